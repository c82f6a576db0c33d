"""Studies: papers, Linux and other simulators beside the simulator, and questions."""
