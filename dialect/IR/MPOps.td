//===- MPOps.td - all operations of the mp dialect ------------------------===//

#ifndef MP_OPS_TD
#define MP_OPS_TD

include "dialect/IR/MPAtenOps.td"
include "dialect/IR/MPCastOps.td"
include "dialect/IR/MPRaisedOps.td"
include "dialect/IR/MPRegionOps.td"
include "dialect/IR/MPUpdateOps.td"

#endif // MP_OPS_TD
