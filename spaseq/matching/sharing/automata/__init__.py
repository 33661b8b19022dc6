"""What queries begin with: under common names, built once for alike ones, several merged into one."""
