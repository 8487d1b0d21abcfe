//===- ReportJSON.cpp - a cast report for programs ------------------------===//

#include "passes/Report/PlacementPrinters.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace mlir::mp;
namespace json = llvm::json;

namespace {
class Writer {
public:
  explicit Writer(llvm::raw_ostream &os) : json(os, /*IndentSize=*/1) {}
  void write(const CastReport &report);

private:
  void tally(StringRef key, const Tally &tally);
  void change(StringRef key, const Change &change);
  void region(const RegionReport &region);
  void rewrite(const RewriteEntry &rewrite);
  void cast(const CastEntry &cast);
  void pin(const PinEntry &pin);
  template <typename Rows, typename Name>
  void changes(StringRef key, const Rows &rows, Name name) {
    json.attributeObject(key, [&] {
      for (const auto &[row, value] : rows)
        change(name(row), value);
    });
  }
  void counts(StringRef key, const std::map<std::string, int64_t> &rows) {
    json.attributeObject(key, [&] {
      for (const auto &[row, value] : rows)
        text(row, value);
    });
  }
  /// Text that a file brought in may not be UTF-8.
  void text(StringRef key, StringRef value) {
    json.attribute(json::fixUTF8(key), json::fixUTF8(value));
  }
  void text(StringRef key, int64_t value) {
    json.attribute(json::fixUTF8(key), value);
  }

  json::OStream json;
};
} // namespace

void Writer::tally(StringRef key, const Tally &tally) {
  json.attributeObject(key, [&] {
    json.attribute("casts", tally.casts);
    json.attribute("bytes", tally.bytes);
    json.attribute("dynamic", tally.dynamic);
  });
}

void Writer::change(StringRef key, const Change &change) {
  json.attributeObject(json::fixUTF8(key), [&] {
    tally("before", change.before);
    tally("after", change.after);
  });
}

void Writer::rewrite(const RewriteEntry &rewrite) {
  json.object([&] {
    text("rule", rewrite.rule);
    text("contract", rewrite.contract);
    json.attribute("node", rewrite.node);
    text("op", rewrite.op);
    text("why", rewrite.why);
  });
}

void Writer::cast(const CastEntry &cast) {
  json.object([&] {
    text("from", cast.from);
    text("to", cast.to);
    text("shape", cast.shape);
    json.attribute("bytes", cast.bytes ? json::Value(*cast.bytes)
                                       : json::Value(nullptr));
    text("origin", stringifyCastOrigin(cast.origin));
    text("role", stringifyCastRole(cast.role));
    text("phase", cast.isBackward ? "backward" : "forward");
    json.attribute("node", cast.node);
    text("source", cast.source);
    text("reason", cast.reason);
  });
}

void Writer::pin(const PinEntry &pin) {
  json.object([&] {
    text("format", pin.format);
    text("where", pin.where);
    text("rule", pin.rule);
    text("reason", pin.reason);
    text("op", pin.op);
    json.attribute("bytes",
                   pin.bytes ? json::Value(*pin.bytes) : json::Value(nullptr));
    text("phase", pin.isBackward ? "backward" : "forward");
    json.attribute("node", pin.node);
    text("source", pin.source);
  });
}

void Writer::region(const RegionReport &region) {
  json.object([&] {
    text("path", region.path);
    change("total", region.total);
    json.attributeArray("applied", [&] {
      for (const RewriteEntry &entry : region.applied)
        rewrite(entry);
    });
    json.attributeArray("left", [&] {
      for (const CastEntry &entry : region.left)
        cast(entry);
    });
    json.attributeArray("pins", [&] {
      for (const PinEntry &entry : region.pins)
        pin(entry);
    });
    if (!region.stored.empty())
      json.attributeArray("stored", [&] {
        for (const StoredEntry &entry : region.stored)
          writeStored(json, entry);
      });
  });
}

void Writer::write(const CastReport &report) {
  auto same = [](const std::string &name) -> StringRef { return name; };
  json.object([&] {
    json.attribute("schema", kReportSchema);
    text("input", report.input);
    text("numerics", report.numerics);
    text("target", report.target);
    text("policy", report.policy);
    if (report.errorGrowth)
      json.attributeObject("error_growth", [&] {
        json.attribute("expected", report.errorGrowth->expected);
        json.attribute("epsilon", report.errorGrowth->epsilon);
      });
    json.attributeArray("policy_notes", [&] {
      for (const std::string &note : report.policyNotes)
        json.value(json::fixUTF8(note));
    });
    json.attribute("operations", report.operations);
    change("total", report.total);
    json.attributeObject("phases", [&] {
      change("forward", report.forward);
      change("backward", report.backward);
    });
    changes("roles", report.roles, stringifyCastRole);
    changes("origins", report.origins, same);
    changes("conversions", report.conversions, same);
    counts("rules", report.rules);
    counts("pins", report.pins);
    counts("unknown_operators", report.unknownOps);
    tally("implicit", report.implicit);
    tally("half_weights", report.halfWeights);
    if (!report.notes.empty())
      json.attributeArray("notes", [&] {
        for (const std::string &note : report.notes)
          json.value(json::fixUTF8(note));
      });
    if (!report.placements.empty())
      json.attributeArray("placements", [&] {
        for (const PlacementReport &placement : report.placements)
          writePlacement(json, placement);
      });
    json.attributeArray("regions", [&] {
      for (const RegionReport &entry : report.regions)
        region(entry);
    });
  });
}

void mlir::mp::printJSON(const CastReport &report, llvm::raw_ostream &os) {
  Writer(os).write(report);
  os << '\n';
}
