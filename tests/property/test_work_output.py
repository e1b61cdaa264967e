"""Laws of held output: within its bounds, in order, and nothing lost that a living watcher waits for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mesh.work.config import WorkConfig
from mesh.work.keeping.output import OutputStore

CONFIG = WorkConfig(output_bytes_max=600, output_total_bytes_max=1500)
tasks = st.sampled_from(["a", "b", "c", "d"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), tasks, st.integers(1, 300)),
        st.tuples(st.just("watch"), tasks, st.integers(1, 3)),
        st.tuples(st.just("take"), tasks, st.integers(1, 3)),
        st.tuples(st.just("unwatch"), tasks, st.integers(1, 3)),
        st.tuples(st.just("finish"), tasks, st.none()),
        st.tuples(st.just("forget"), tasks, st.none()),
        st.tuples(st.just("again"), tasks, st.none()),
    ),
    max_size=80,
)


@given(steps)
def test_a_watcher_misses_nothing_and_the_bounds_hold(
    script: list[tuple[str, str, int | None]],
) -> None:
    store = OutputStore(CONFIG)
    owed: dict[int, list[bytes]] = {}
    for number, (step, task_id, value) in enumerate(script):
        if step == "append" and value is not None:
            data = number.to_bytes(2, "big") * value
            fits = len(data) + 64 <= CONFIG.output_bytes_max
            if store.append(task_id, 1, data) is not None and fits:
                for watcher_id in store.log(task_id).watchers:
                    owed[watcher_id].append(data)
        elif step == "watch" and value is not None:
            store.watch(value, task_id)
            owed[value] = [data for _, data in store.log(task_id).pieces]
        elif step == "unwatch" and value is not None:
            store.unwatch(value)
        elif step == "take" and value is not None:
            watcher = store.watchers.get(value)
            if watcher is not None:
                assert [data for _, data in store.take(watcher)] == owed[value]
                owed[value] = []
        elif step == "finish":
            store.finish(task_id)
        elif step in {"forget", "again"}:
            watchers = list(store.log(task_id).watchers)
            (store.forget if step == "forget" else store.start_attempt)(task_id)
            for watcher_id in watchers:
                owed[watcher_id] = []
        store.check_invariants()
