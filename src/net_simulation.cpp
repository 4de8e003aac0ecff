#include <dflow/net/simulation/simulation.ipp>
