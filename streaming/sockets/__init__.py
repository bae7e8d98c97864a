"""What commands ask a running front through its sockets."""
