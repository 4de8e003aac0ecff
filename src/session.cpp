#include <dflow/session/session.ipp>
