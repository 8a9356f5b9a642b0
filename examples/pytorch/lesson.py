# %% [markdown]
# # From a module to kernels that are proven right
#
# Cells begin with `# %%`: editors and notebooks (jupytext) open this file as one; as a program it
# runs from top to bottom.
#
#     PYTHONPATH=python python3 examples/pytorch/lesson.py     # from the folder of the sources

# %% A module, and inputs as it will be called with.
import torch
import warploom
from torch import nn


class Net(nn.Module):
    """A perceptron with a norm."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(32)
        self.first = nn.Linear(32, 64)
        self.second = nn.Linear(64, 32)

    def forward(self, x):
        return x + self.second(torch.relu(self.first(self.norm(x))))


device = "cuda" if torch.cuda.is_available() else "cpu"
net = Net().to(device).eval()
x = torch.randn(16, 32, device=device)

# %% One call exports, searches, builds, adopts and checks. The table that it prints has two halves:
# errors of each output against FP64, and what each region takes beside the library's routine.
faster = warploom.optimize(net, x, budget="60s")

# %% `faster` is a module of the same class with the same parameters. Weights that change are
# noticed: nothing old is ever computed.
with torch.no_grad():
    print("as the module:", (faster(x) - net(x)).abs().max().item())
    net.first.weight.mul_(2)
    print("with other weights:", (faster(x) - net(x)).abs().max().item())

# %% Kernels compute no gradients, and say so rather than give wrong ones.
try:
    faster(x)
except RuntimeError as error:
    print(error.code, "-", error)

# %% Kernels are for one shape. Several are a dictionary; another shape is the module's own affair.
sizes = warploom.optimize(net, {"one": x[:1], "all": x}, budget="60s", quiet=True)
with torch.no_grad():
    for count in (1, 16, 5):
        print(count, (sizes(x[:count]) - net(x[:count])).abs().max().item())

# %% Not all that a program does is read. The backend of torch.compile cuts a graph into what is and
# what stays with torch. Here it is called by hand, as torch 1.13 has no torch.compile; in torch 2
# it is torch.compile(module, backend="warploom", options={…}).


class Counting(Net):
    """A histogram in its midst."""

    def forward(self, x):
        hidden = torch.relu(self.first(self.norm(x)))
        return x + self.second(hidden) / torch.histc(hidden, bins=4).sum()


counting = Counting().to(device).eval()
graph = torch.fx.symbolic_trace(counting)
compiled = warploom.backend(graph, [x], options={"budget": "60s"})
with torch.no_grad():
    print("in parts:", (compiled(x) - counting(x)).abs().max().item())
print("\n".join(compiled.report))

# %% What is refused has a code. Control flow by elements would be lost in an ONNX file.


class Branching(Net):
    """Python decides by an element."""

    def forward(self, x):
        return x if x.sum() > 0 else super().forward(x)


try:
    warploom.export(Branching().eval(), x.cpu(), "branching.onnx")
except warploom.WarploomError as error:
    print(error.code, "at", error.place)
