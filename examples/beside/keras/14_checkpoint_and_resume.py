"""Training that may be interrupted at any step and goes on as if it had not been:
  14_checkpoint_and_resume.py [FOLDER [STEPS]]
Without a folder it shows that: two runs, one of them interrupted, end with the same bits.
"""

import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf


def train(folder, last_step):
    """Trains up to `last_step` from the latest checkpoint in the folder; returns the weights of the hidden layer."""
    rows = np.loadtxt(Path(__file__).parents[2] / "data/optdigits.csv.gz", np.float32, delimiter=",")
    keras.utils.set_random_seed(1)
    model = keras.Sequential([
        keras.Input((64,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.2),
        keras.layers.Dense(10),
    ])
    model.compile(keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    digits = tf.data.Dataset.from_tensor_slices((rows[:, :64] / 16, rows[:, 64]))
    batches = iter(digits.shuffle(500, seed=1).batch(32).repeat(1000).prefetch(2))
    step = tf.Variable(0, dtype=tf.int64)
    random = model.layers[1].seed_generator.state.value  # which a model does not save
    checkpoint = tf.train.Checkpoint(model=model, optimizer=model.optimizer, random=random, batches=batches, step=step)
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=5, checkpoint_name="digits", step_counter=step)
    if latest := manager.restore_or_initialize():
        print(f"goes on from {latest}")
    if step >= last_step:
        print(f"step {int(step)}: nothing is left to do")
    while step < last_step:
        loss = model.train_on_batch(*next(batches))
        if step.assign_add(1) % 20 == 0 or step == last_step:
            manager.save(checkpoint_number=step)
            if step == last_step:
                print(f"step {last_step}: loss {loss:.9f}")
    return model.layers[0].kernel.numpy()


tf.config.experimental.enable_op_determinism()
if len(sys.argv) > 1:
    train(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200)
else:
    with tempfile.TemporaryDirectory() as whole, tempfile.TemporaryDirectory() as interrupted:
        expected = train(whole, 140)
        for until in (50, 90):
            train(interrupted, until)
        is_same = np.array_equal(train(interrupted, 140), expected)
    print(f"the interrupted run has ended {'with the same bits' if is_same else 'DIFFERENTLY'}")
    sys.exit(not is_same)
