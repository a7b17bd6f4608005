"""The same workloads in Proctor and in other evaluation frameworks, side by side in one run."""
