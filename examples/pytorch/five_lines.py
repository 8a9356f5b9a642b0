"""From a torch.nn.Module to a faster one, in five lines.

    PYTHONPATH=python python3 examples/pytorch/five_lines.py     # from the folder of the sources
"""

import torch
from torch import nn


class Net(nn.Module):
    """A convolution with a batch norm, pooled, and a classifier."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.norm = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, 10)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        return self.head(h.mean((2, 3)))


device = "cuda" if torch.cuda.is_available() else "cpu"
net = Net().to(device).eval()
x = torch.randn(4, 3, 32, 32, device=device)

# The lesson: one to bring Warploom in, one to search, three to use what was found.
import warploom

faster = warploom.optimize(net, x, budget="10s")
with torch.no_grad():
    y = faster(x)
print("largest difference:", (y - net(x)).abs().max().item())

# The kernels compute with whatever weights the module has.
other = Net().to(device).eval()
faster.load_state_dict(other.state_dict())
with torch.no_grad():
    error = (faster(x) - other(x)).abs().max().item()
print("with other weights:", error)
assert error < 1e-3
