#include "program.hpp"

int main() { return run_dense_layer({.ops = dflow::standard_ops}); }
