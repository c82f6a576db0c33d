"""`python -m cwnd`."""

from cwnd.cli import main

main()
