"""What all parts stand on: names, devices, shards, the graph's nodes, who takes what is told."""
