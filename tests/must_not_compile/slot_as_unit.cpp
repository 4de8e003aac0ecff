// expect: no match for .*operator\[\]|no viable overloaded operator\[\]
#include <dflow/runtime/plan/plan.hpp>

// The number of a slot is none of a unit.
const dflow::Plan::Unit& unit(const dflow::Plan& plan) { return plan.units()[plan.feed_slots()[0]]; }
