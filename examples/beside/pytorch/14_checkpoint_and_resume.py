"""Training that may be interrupted at any step and goes on as if it had not been:
  14_checkpoint_and_resume.py [FOLDER [STEPS]]
Without a folder it shows that: two runs, one of them interrupted, end with the same bits.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import nn


def train(folder, last_step):
    """Trains up to `last_step` from the checkpoint in the folder; returns the weights of the hidden layer."""
    rows = torch.from_numpy(
        np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    )
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    path = Path(folder) / "digits.pt"
    done = 0
    if path.exists():
        saved = torch.load(path)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        done = saved["step"]
        print(f"goes on from {path} at step {done}")
    if done >= last_step:
        print(f"step {done}: nothing is left to do")
    per_epoch = -(-len(rows) // 32)
    for step in range(done, last_step):
        epoch, batch = divmod(step, per_epoch)
        order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(epoch))
        picked = rows[order[32 * batch : 32 * (batch + 1)]]
        loss = nn.functional.cross_entropy(model(picked[:, :64] / 16), picked[:, 64].long())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if (step + 1) % 20 == 0 or step + 1 == last_step:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "random": torch.get_rng_state(), "step": step + 1}, path)
            if step + 1 == last_step:
                print(f"step {last_step}: loss {loss.item():.9f}")
    return model[0].weight.detach()


if len(sys.argv) > 1:
    Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
    train(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
else:
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as interrupted:
        expected = train(whole, 140)
        for until in (50, 90):
            train(interrupted, until)
        is_same = torch.equal(train(interrupted, 140), expected)
    print(f"the interrupted run has ended {'with the same bits' if is_same else 'DIFFERENTLY'}")
    sys.exit(not is_same)
