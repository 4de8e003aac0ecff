#include <dflow/net/asio/asio_address.ipp>
#include <dflow/net/asio/asio_transport.ipp>
