//===- PlacementJSON.cpp - a placement for programs -----------------------===//

#include "passes/Report/PlacementPrinters.h"

#include <cmath>

using namespace mlir;
using namespace mlir::mp;
namespace json = llvm::json;

/// Text that a file brought in may not be UTF-8.
static void text(json::OStream &json, StringRef key, StringRef value) {
  json.attribute(key, json::fixUTF8(value));
}

/// JSON has no infinity.
static void error(json::OStream &json, double value) {
  json.attribute("error", std::isfinite(value) ? json::Value(value) : nullptr);
}

static void writePoint(json::OStream &json, const FrontierPoint &point) {
  json.object([&] {
    json.attribute("epsilon", point.epsilon ? json::Value(*point.epsilon)
                                            : json::Value(nullptr));
    json.attribute("bytes", point.bytes);
    json.attribute("saved_bytes", point.savedBytes);
    error(json, point.error);
    json.attribute("chosen", point.isChosen);
  });
}

static void writeUnpinning(json::OStream &json, const Unpinning &unpinning,
                           bool isSingle) {
  json.object([&] {
    text(json, "rule", unpinning.rule);
    json.attribute("pins", unpinning.pins);
    json.attribute("bytes", unpinning.bytes);
    json.attribute("saved_bytes", unpinning.savedBytes);
    error(json, unpinning.error);
    json.attribute("within", unpinning.isWithin);
    if (!isSingle)
      return;
    text(json, "region", unpinning.region);
    text(json, "op", unpinning.op);
    text(json, "source", unpinning.source);
    text(json, "reason", unpinning.reason);
  });
}

void mlir::mp::writePlacement(json::OStream &json,
                              const PlacementReport &placement) {
  json.object([&] {
    text(json, "function", placement.function);
    text(json, "half", placement.half);
    json.attribute("epsilon", placement.epsilon);
    json.attribute("values", placement.values);
    json.attribute("reads", placement.reads);
    json.attribute("cut_bytes", placement.cut);
    json.attribute("bytes", placement.bytes);
    json.attribute("saved_bytes", placement.savedBytes);
    error(json, placement.error);
    json.attribute("error_allowed", placement.allowedError);
    json.attribute("bytes_per_percent", placement.bytesPerPercent);
    json.attributeArray("frontier", [&] {
      for (const FrontierPoint &point : placement.frontier)
        writePoint(json, point);
    });
    json.attributeArray("without_rule", [&] {
      for (const Unpinning &rule : placement.rules)
        writeUnpinning(json, rule, /*isSingle=*/false);
    });
    json.attributeArray("without_pin", [&] {
      for (const Unpinning &pin : placement.pins)
        writeUnpinning(json, pin, /*isSingle=*/true);
    });
  });
}

void mlir::mp::writeStored(json::OStream &json, const StoredEntry &entry) {
  json.object([&] {
    text(json, "op", entry.op);
    text(json, "shape", entry.shape);
    text(json, "types", entry.types);
    json.attribute("bytes", entry.bytes);
    text(json, "phase", entry.isBackward ? "backward" : "forward");
    json.attribute("saved", entry.isSaved);
    text(json, "why", stringifyStoredReason(entry.reason));
    text(json, "rule", entry.rule);
    error(json, std::sqrt(1 + entry.noise));
    json.attribute("saves", entry.saves);
    json.attribute("node", entry.node);
    text(json, "source", entry.source);
    text(json, "reason", storedText(entry));
  });
}
