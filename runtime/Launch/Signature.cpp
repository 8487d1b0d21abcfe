//===- Signature.cpp - a scanner of `@kernel`'s type ----------------------===//

#include "runtime/Launch/Signature.h"
#include <algorithm>
#include <array>

using namespace mp::runtime;

static constexpr std::array<std::string_view, 7> kElementNames = {
    "f16", "bf16", "f32", "i1", "i8", "i32", "i64"};
static constexpr std::string_view kTensor = "tensor<";
static constexpr std::string_view kFunction = "@kernel(";

std::string_view mp::runtime::stringifyElement(Element element) {
  return kElementNames[size_t(element)];
}

static bool isDynamic(const TensorType &type) {
  return std::find(type.dims.begin(), type.dims.end(), TensorType::kDynamic) !=
         type.dims.end();
}

size_t Signature::sizeCount() const {
  return std::any_of(arguments.begin(), arguments.end(), isDynamic) ? 1 : 0;
}

static std::optional<Element> parseElement(std::string_view name) {
  const auto *found =
      std::find(kElementNames.begin(), kElementNames.end(), name);
  if (found == kElementNames.end())
    return std::nullopt;
  return Element(found - kElementNames.begin());
}

/// "16", "?": at most 18 digits, so that no number overflows.
static std::optional<int64_t> parseExtent(std::string_view text) {
  if (text == "?")
    return TensorType::kDynamic;
  if (text.empty() || text.size() > 18)
    return std::nullopt;
  int64_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9')
      return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return value;
}

/// What stands between the angle brackets, "?x768xbf16".
static std::optional<TensorType> parseTensor(std::string_view text) {
  TensorType type{};
  for (size_t cross; (cross = text.find('x')) != std::string_view::npos;) {
    std::optional<int64_t> extent = parseExtent(text.substr(0, cross));
    if (!extent)
      return std::nullopt;
    type.dims.push_back(*extent);
    text.remove_prefix(cross + 1);
  }
  std::optional<Element> element = parseElement(text);
  if (!element)
    return std::nullopt;
  type.element = *element;
  return type;
}

/// All tensor types in `text`; false at the first that is not of the contract.
static bool parseTensors(std::string_view text, std::vector<TensorType> &types,
                         std::string &error) {
  for (size_t at; (at = text.find(kTensor)) != std::string_view::npos;) {
    text.remove_prefix(at + kTensor.size());
    size_t end = std::min(text.find('>'), text.size());
    std::optional<TensorType> type = parseTensor(text.substr(0, end));
    if (!type) {
      error = "a kernel has a tensor<" + std::string(text.substr(0, end)) +
              ">, which the contract does not know";
      return false;
    }
    types.push_back(std::move(*type));
    text.remove_prefix(end);
  }
  return true;
}

/// The text up to the parenthesis that closes the one before it.
static std::string_view untilClosed(std::string_view text) {
  int depth = 1;
  for (size_t i = 0; i != text.size(); ++i) {
    depth += text[i] == '(' ? 1 : text[i] == ')' ? -1 : 0;
    if (depth == 0)
      return text.substr(0, i);
  }
  return {};
}

static std::string_view trimmed(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \n\t"), text.size()));
  return text;
}

/// The types after "->": a list in parentheses, or a single one.
static std::string_view resultsIn(std::string_view text) {
  text = trimmed(text);
  if (text.substr(0, 2) != "->")
    return {};
  text = trimmed(text.substr(2));
  if (text.substr(0, 1) == "(")
    return untilClosed(text.substr(1));
  return text.substr(0, text.find('>') + 1);
}

std::optional<Signature> mp::runtime::parseSignature(std::string_view text,
                                                     std::string &error) {
  size_t at = text.find(kFunction);
  if (at == std::string_view::npos) {
    error = "a kernel's text holds no function @kernel";
    return std::nullopt;
  }
  text.remove_prefix(at + kFunction.size());
  std::string_view arguments = untilClosed(text);
  text.remove_prefix(std::min(arguments.size() + 1, text.size()));
  Signature signature;
  if (!parseTensors(arguments, signature.arguments, error) ||
      !parseTensors(resultsIn(text), signature.results, error))
    return std::nullopt;
  if (signature.results.empty()) {
    error = "a kernel's function @kernel has no result";
    return std::nullopt;
  }
  if (signature.sizeCount() == 0 &&
      std::any_of(signature.results.begin(), signature.results.end(),
                  isDynamic)) {
    error = "a kernel has a dynamic result but no dynamic argument";
    return std::nullopt;
  }
  return signature;
}
