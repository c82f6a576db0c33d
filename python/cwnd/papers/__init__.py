"""The papers that come with cwnd, a folder for each."""
