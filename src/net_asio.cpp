#include <dflow/net/asio_address.ipp>
#include <dflow/net/asio_transport.ipp>
