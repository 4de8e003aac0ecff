// expect: numeric_limits<dflow::Symbol>
#include <dflow/op/symbol.hpp>

int main() { static_cast<void>(std::numeric_limits<dflow::Symbol>::lowest()); }
