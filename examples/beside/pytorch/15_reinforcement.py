"""Learns to walk by what it gets for it: an actor chooses, a critic says what a place is worth."""

import random
import sys

import torch
from torch import nn

LENGTH = 9
DISCOUNT = 0.95


class World:
    def __init__(self):
        self.place = 2
        self.random = random.Random(7)

    def move(self, action):
        """Takes a move, 0 left or 1 right; returns what it brings, and whether it was the last one."""
        if self.random.randrange(10) == 0:
            action = 1 - action
        self.place += 1 if action == 1 else -1
        if self.place == 0:
            return -1.0, True
        if self.place == LENGTH - 1:
            return 1.0, True
        return -0.01, False


def seen(place):
    return nn.functional.one_hot(torch.tensor(place), LENGTH).float()


torch.manual_seed(3)
body = nn.Sequential(nn.Linear(LENGTH, 24), nn.Tanh())
actor, critic = nn.Linear(24, 2), nn.Linear(24, 1)
optimizer = torch.optim.Adam(nn.ModuleList([body, actor, critic]).parameters(), lr=1e-2)
world = World()
for walk in range(1, 401):
    if walk % 100 == 1:
        won = 0
    world.place = 2
    for _ in range(100):
        hidden = body(seen(world.place))
        choice = torch.distributions.Categorical(logits=actor(hidden))
        action = choice.sample()
        reward, has_ended = world.move(action.item())
        with torch.no_grad():
            rest = 0.0 if has_ended else critic(body(seen(world.place)))
        advantage = reward + DISCOUNT * rest - critic(hidden)
        loss = (-choice.log_prob(action) * advantage.detach() + 0.5 * advantage**2).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        won += reward == 1.0
        if has_ended:
            break
    if walk % 100 == 0:
        print(f"walks {walk - 99:3} to {walk:3}: {won:3} of 100 reach the prize")
sys.exit(won <= 70)
