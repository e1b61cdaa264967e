// One memberlist member as a process: memberlist_node PROFILE[:MULTIPLIER] NAME HOST:PORT [SEED].
//
// The multiplier is that of a suspicion's length; without it, the profile's own.
//
// It speaks the lines that mesh/bench/peers/harness.py describes. Build it with Debian's packages:
//
//	GO111MODULE=off GOPATH=/usr/share/gocode go build memberlist_node.go
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	joinPause    = 50 * time.Millisecond
	leaveTimeout = 5 * time.Second
)

// counters of what this process sent since its start.
var datagrams, datagramBytes, streams, streamBytes int64

// deaf is 1 while everything that arrives is dropped.
var deaf int32

func see(sight, member string) {
	fmt.Printf("see %d %s %s\n", time.Now().UnixNano(), sight, member)
}

// observer turns memberlist's notices into lines.
type observer struct{}

func (observer) NotifyJoin(node *memberlist.Node) { see("alive", node.Name) }

// NotifyLeave is told of deaths and of leaves, and not which it is.
func (observer) NotifyLeave(node *memberlist.Node) { see("dead", node.Name) }

func (observer) NotifyUpdate(*memberlist.Node) {}

// logReader finds suspicions, which only the log tells.
type logReader struct{}

var suspicion = regexp.MustCompile(`Suspect (\S+) has failed`)

func (logReader) Write(line []byte) (int, error) {
	if found := suspicion.FindSubmatch(line); found != nil {
		see("suspect", string(found[1]))
	}
	return len(line), nil
}

// countedConn counts what goes out on a stream, and loses what comes in while deaf.
type countedConn struct{ net.Conn }

func (c countedConn) Read(data []byte) (int, error) {
	for {
		count, err := c.Conn.Read(data)
		if err != nil || atomic.LoadInt32(&deaf) == 0 {
			return count, err
		}
	}
}

func (c countedConn) Write(data []byte) (int, error) {
	count, err := c.Conn.Write(data)
	atomic.AddInt64(&streamBytes, int64(count))
	return count, err
}

// wire is memberlist's own transport, counted, and deaf when told to be.
type wire struct {
	*memberlist.NetTransport
	packets chan *memberlist.Packet
	conns   chan net.Conn
}

func newWire(inner *memberlist.NetTransport) *wire {
	w := &wire{inner, make(chan *memberlist.Packet), make(chan net.Conn)}
	go func() {
		for packet := range inner.PacketCh() {
			if atomic.LoadInt32(&deaf) == 0 {
				w.packets <- packet
			}
		}
	}()
	go func() {
		for conn := range inner.StreamCh() {
			if atomic.LoadInt32(&deaf) == 1 {
				// Neither answered nor closed, until the asker gives up.
				time.AfterFunc(time.Minute, func() { conn.Close() })
				continue
			}
			atomic.AddInt64(&streams, 1)
			w.conns <- countedConn{conn}
		}
	}()
	return w
}

func (w *wire) PacketCh() <-chan *memberlist.Packet { return w.packets }

func (w *wire) StreamCh() <-chan net.Conn { return w.conns }

func (w *wire) WriteTo(data []byte, to string) (time.Time, error) {
	atomic.AddInt64(&datagrams, 1)
	atomic.AddInt64(&datagramBytes, int64(len(data)))
	return w.NetTransport.WriteTo(data, to)
}

func (w *wire) WriteToAddress(data []byte, to memberlist.Address) (time.Time, error) {
	return w.WriteTo(data, to.Addr)
}

func (w *wire) DialTimeout(to string, timeout time.Duration) (net.Conn, error) {
	conn, err := w.NetTransport.DialTimeout(to, timeout)
	if err != nil {
		return nil, err
	}
	atomic.AddInt64(&streams, 1)
	return countedConn{conn}, nil
}

func (w *wire) DialAddressTimeout(to memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return w.DialTimeout(to.Addr, timeout)
}

func preset(name string) *memberlist.Config {
	switch name {
	case "local":
		return memberlist.DefaultLocalConfig()
	case "wan":
		return memberlist.DefaultWANConfig()
	}
	return memberlist.DefaultLANConfig()
}

func settings(profile string) *memberlist.Config {
	parts := strings.SplitN(profile, ":", 2)
	config := preset(parts[0])
	if len(parts) > 1 {
		multiplier, err := strconv.Atoi(parts[1])
		check(err)
		config.SuspicionMult = multiplier
	}
	return config
}

func start(profile, name, bind string) *memberlist.Memberlist {
	host, portText, err := net.SplitHostPort(bind)
	check(err)
	port, err := strconv.Atoi(portText)
	check(err)
	logger := log.New(logReader{}, "", 0)
	inner, err := memberlist.NewNetTransport(&memberlist.NetTransportConfig{
		BindAddrs: []string{host}, BindPort: port, Logger: logger,
	})
	check(err)
	config := settings(profile)
	config.Name = name
	config.BindAddr, config.BindPort = host, port
	config.AdvertiseAddr, config.AdvertisePort = host, port
	config.Events = observer{}
	config.Logger = logger
	config.Transport = newWire(inner)
	list, err := memberlist.Create(config)
	check(err)
	return list
}

func check(err error) {
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
}

func main() {
	if len(os.Args) < 4 {
		fmt.Println("usage: memberlist_node PROFILE NAME HOST:PORT [SEED]")
		os.Exit(2)
	}
	list := start(os.Args[1], os.Args[2], os.Args[3])
	if len(os.Args) > 4 {
		go func() {
			for {
				if _, err := list.Join(os.Args[4:5]); err == nil {
					return
				}
				time.Sleep(joinPause)
			}
		}()
	}
	words := bufio.NewScanner(os.Stdin)
	for words.Scan() {
		switch words.Text() {
		case "traffic":
			fmt.Println("traffic", atomic.LoadInt64(&datagrams), atomic.LoadInt64(&datagramBytes),
				atomic.LoadInt64(&streams), atomic.LoadInt64(&streamBytes))
		case "deaf":
			atomic.StoreInt32(&deaf, 1-atomic.LoadInt32(&deaf))
		case "leave":
			check(list.Leave(leaveTimeout))
			check(list.Shutdown())
			return
		}
	}
}
