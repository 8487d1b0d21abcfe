//===- RegionGroups.cpp - like regions together ---------------------------===//

#include "passes/Report/RegionGroups.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::mp;

namespace {
/// "layers.0.attn" as "layers.", 0, ".attn".
struct NumberedPath {
  std::string prefix, suffix;
  std::optional<int64_t> number;
};
} // namespace

static NumberedPath splitAtNumber(StringRef path) {
  SmallVector<StringRef> parts;
  path.split(parts, '.');
  for (auto [i, part] : llvm::enumerate(parts)) {
    int64_t number;
    if (part.getAsInteger(10, number))
      continue;
    auto all = llvm::ArrayRef(parts);
    return {llvm::join(all.take_front(i), ".") + (i ? "." : ""),
            (i + 1 == parts.size() ? "" : ".") +
                llvm::join(all.drop_front(i + 1), "."),
            number};
  }
  return {path.str(), "", std::nullopt};
}

/// Everything that must agree for two regions to be told together.
static std::string storyOf(const RegionReport &region,
                           const NumberedPath &path) {
  std::string key = path.prefix + "\n" + path.suffix + "\n";
  auto number = [&](int64_t value) { key += std::to_string(value) + ","; };
  for (const Tally &tally : {region.total.before, region.total.after}) {
    number(tally.casts);
    number(tally.bytes);
    number(tally.dynamic);
  }
  std::map<std::string, int64_t> rules;
  for (const RewriteEntry &rewrite : region.applied)
    ++rules[rewrite.rule];
  for (const PinEntry &pin : region.pins)
    ++rules["pin " + pin.rule + pin.where];
  for (const StoredEntry &entry : region.stored)
    ++rules["stored " + entry.op + entry.types +
            stringifyStoredReason(entry.reason).str() + entry.rule];
  for (const auto &[rule, count] : rules) {
    key += rule;
    number(count);
  }
  return key;
}

/// "0..11" of 0 to 11 in order, else "0,2,5".
static std::string rangeText(std::vector<int64_t> numbers) {
  llvm::sort(numbers);
  bool isRange = numbers.size() > 2 && numbers.back() - numbers.front() + 1 ==
                                           int64_t(numbers.size());
  if (isRange)
    return std::to_string(numbers.front()) + ".." +
           std::to_string(numbers.back());
  std::string text;
  for (int64_t number : numbers)
    text += (text.empty() ? "" : ",") + std::to_string(number);
  return text;
}

std::vector<RegionGroup> mlir::mp::groupRegions(const CastReport &report) {
  std::vector<RegionGroup> groups;
  std::map<std::string, size_t> indices;
  std::vector<std::vector<int64_t>> numbers;
  for (const RegionReport &region : report.regions) {
    NumberedPath path = splitAtNumber(region.path);
    std::string key = storyOf(region, path);
    auto [it, isNew] = indices.try_emplace(key, groups.size());
    if (isNew) {
      groups.emplace_back();
      numbers.emplace_back();
    }
    RegionGroup &group = groups[it->second];
    group.regions.push_back(&region);
    group.total.before += region.total.before;
    group.total.after += region.total.after;
    if (path.number)
      numbers[it->second].push_back(*path.number);
  }
  for (auto [group, list] : llvm::zip(groups, numbers)) {
    const std::string &first = group.regions.front()->path;
    if (group.regions.size() == 1) {
      group.label = regionLabel(first);
      continue;
    }
    NumberedPath path = splitAtNumber(first);
    group.label = path.prefix + "[" + rangeText(list) + "]" + path.suffix;
  }
  return groups;
}

std::vector<RuleGroup> mlir::mp::groupRules(const RegionGroup &group) {
  std::vector<RuleGroup> rules;
  std::map<std::string, size_t> indices;
  for (const RegionReport *region : group.regions)
    for (const RewriteEntry &rewrite : region->applied) {
      auto [it, isNew] = indices.try_emplace(rewrite.rule, rules.size());
      if (isNew)
        rules.push_back({rewrite.rule, rewrite.contract, rewrite.why, 0});
      ++rules[it->second].count;
    }
  return rules;
}

std::vector<LeftGroup> mlir::mp::groupLeft(const RegionGroup &group) {
  std::vector<LeftGroup> left;
  std::map<std::string, size_t> indices;
  for (const RegionReport *region : group.regions)
    for (const CastEntry &cast : region->left) {
      std::string key = cast.conversion() + "\n" +
                        stringifyCastRole(cast.role).str() + "\n" +
                        (cast.isBackward ? "b" : "f") + "\n" + cast.reason;
      auto [it, isNew] = indices.try_emplace(key, left.size());
      if (isNew)
        left.push_back({&cast, {}, {}});
      left[it->second].total.add(cast.bytes);
      left[it->second].shapes.insert(cast.shape);
    }
  return left;
}

std::vector<PinGroup> mlir::mp::groupPins(const RegionGroup &group) {
  std::vector<PinGroup> pins;
  std::map<std::string, size_t> indices;
  for (const RegionReport *region : group.regions)
    for (const PinEntry &pin : region->pins) {
      std::string key = pin.format + pin.where + pin.rule;
      auto [it, isNew] = indices.try_emplace(key, pins.size());
      if (isNew)
        pins.push_back({&pin});
      PinGroup &same = pins[it->second];
      ++same.count;
      same.bytes += pin.bytes.value_or(0);
    }
  return pins;
}

std::vector<StoredGroup> mlir::mp::groupStored(const RegionGroup &group) {
  static constexpr size_t kLargest = 6;
  std::vector<StoredGroup> groups;
  std::map<std::string, size_t> indices;
  for (const RegionReport *region : group.regions)
    for (const StoredEntry &entry : region->stored) {
      std::string key =
          entry.op + "\n" + entry.shape + "\n" + entry.types + entry.why;
      auto [it, isNew] = indices.try_emplace(key, groups.size());
      StoredGroup &same = isNew ? groups.emplace_back() : groups[it->second];
      if (isNew) {
        same = {entry, 1};
        continue;
      }
      ++same.count;
      same.total.bytes += entry.bytes;
      same.total.saves += entry.saves;
      same.total.noise += entry.noise;
    }
  llvm::sort(groups, [](const StoredGroup &a, const StoredGroup &b) {
    return std::tie(b.total.bytes, a.total.node, a.total.op) <
           std::tie(a.total.bytes, b.total.node, b.total.op);
  });
  groups.resize(std::min(groups.size(), kLargest));
  return groups;
}

std::string mlir::mp::shapesText(const LeftGroup &group) {
  return group.shapes.size() == 1
             ? *group.shapes.begin()
             : std::to_string(group.shapes.size()) + " shapes of";
}
