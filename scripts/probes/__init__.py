"""Stimuli for a kernel's TCP sender, and what it does about them."""
