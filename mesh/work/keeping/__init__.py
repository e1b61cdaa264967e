"""What a node does for the tasks that it accepted: keeps, offers, follows and shows them."""
