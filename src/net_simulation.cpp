#include <dflow/net/simulation/simulated_network.ipp>
#include <dflow/net/simulation/simulation.ipp>
