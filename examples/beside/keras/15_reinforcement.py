"""Learns to walk by what it gets for it: an actor chooses, a critic says what a place is worth."""

import random
import sys

import keras
import tensorflow as tf

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


keras.utils.set_random_seed(3)
place = keras.Input((), dtype="int32")
hidden = keras.layers.Dense(24, activation="tanh")(keras.ops.one_hot(place, LENGTH))
model = keras.Model(place, [keras.layers.Dense(2)(hidden), keras.layers.Dense(1)(hidden)])
optimizer = keras.optimizers.Adam(1e-2)
world = World()
for walk in range(1, 401):
    if walk % 100 == 1:
        won = 0
    world.place = 2
    for _ in range(100):
        with tf.GradientTape() as tape:
            logits, value = model(tf.constant([world.place]))
            action = tf.random.categorical(logits, 1)[0]
            reward, has_ended = world.move(int(action[0]))
            rest = 0.0 if has_ended else model(tf.constant([world.place]))[1]
            advantage = reward + DISCOUNT * tf.stop_gradient(rest) - value
            chosen = keras.losses.sparse_categorical_crossentropy(action, logits, from_logits=True)
            loss = tf.reduce_sum(chosen * tf.stop_gradient(advantage) + 0.5 * advantage**2)
        optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
        won += reward == 1.0
        if has_ended:
            break
    if walk % 100 == 0:
        print(f"walks {walk - 99:3} to {walk:3}: {won:3} of 100 reach the prize")
sys.exit(won <= 70)
