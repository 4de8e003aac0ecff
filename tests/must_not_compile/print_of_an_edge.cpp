// expect: deleted
#include <dflow/graph/output.hpp>

#include <iostream>

void print(const dflow::Output<float>& y) { std::cout << y; }
