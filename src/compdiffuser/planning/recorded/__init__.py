"""What is known of the recorded data: what is usual in it, where it has been, and where it leads through."""
