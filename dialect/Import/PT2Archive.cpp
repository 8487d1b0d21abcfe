//===- PT2Archive.cpp - files of torch.export.save ------------------------===//

#include "dialect/Import/PT2Archive.h"
#include "dialect/Import/PT2Schema.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Errc.h"

using namespace mlir::mp;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Error PT2Archive::fail(const llvm::Twine &what) const {
  return llvm::createStringError(llvm::errc::invalid_argument,
                                 zip.path() + ": " + what);
}

Expected<PT2Archive>
PT2Archive::open(std::unique_ptr<llvm::MemoryBuffer> file) {
  Expected<ZipArchive> zip = ZipArchive::open(std::move(file));
  if (!zip)
    return zip.takeError();
  PT2Archive archive(std::move(*zip));
  if (Error error = archive.findRoot())
    return error;
  return archive;
}

/// What an archive without an exported program is, and what to do about it.
static std::string describeOther(const ZipArchive &zip) {
  for (const ZipArchive::Member &member : zip.members()) {
    StringRef name = StringRef(member.name).rsplit('/').second;
    name = name.empty() ? StringRef(member.name) : name;
    if (name == "serialized_exported_program.json")
      return "an exported program in the format before PyTorch 2.7; load it "
             "with that version and save it again with torch.export.save";
    if (name == "constants.pkl")
      return "a TorchScript archive; export the model with "
             "torch.export.export and torch.export.save";
    if (name == "data.pkl")
      return "a torch.save file, which holds tensors but no graph; export the "
             "model with torch.export.export and torch.export.save";
  }
  return "no .pt2 archive: it has no member 'archive_format'";
}

Error PT2Archive::findRoot() {
  static constexpr StringRef kFormat = "archive_format";
  const ZipArchive::Member *format = nullptr;
  for (const ZipArchive::Member &member : zip.members()) {
    StringRef name = member.name;
    if (name.ends_with(kFormat) && name.count('/') <= 1 &&
        (name == kFormat || name.drop_back(kFormat.size()).ends_with("/")))
      format = &member;
  }
  if (!format)
    return fail(describeOther(zip));
  root = StringRef(format->name).drop_back(kFormat.size()).str();
  Expected<StringRef> value = zip.read(*format);
  if (!value)
    return value.takeError();
  if (value->trim() != "pt2")
    return fail("archive format is '" + value->trim().take_front(32) +
                "', expected 'pt2'");

  for (const ZipArchive::Member &member : zip.members()) {
    StringRef name = member.name;
    if (name.consume_front(root) && name.consume_front("models/") &&
        name.consume_back(".json") && !name.empty() && !name.contains('/'))
      modelNames.push_back(name.str());
  }
  if (modelNames.empty())
    return fail("holds no program (models/*.json); a package of AOTInductor "
                "has none: use the file of torch.export.save");
  return Error::success();
}

Expected<std::string> PT2Archive::pickModel(StringRef wanted) const {
  std::string names = llvm::join(modelNames, ", ");
  if (wanted.empty()) {
    if (modelNames.size() == 1)
      return modelNames.front();
    return fail("holds several programs: " + names + "; name one with --model");
  }
  if (!llvm::is_contained(modelNames, wanted))
    return fail("holds no program '" + wanted + "', only: " + names);
  return wanted.str();
}

Expected<StringRef> PT2Archive::program(StringRef model) const {
  std::string name = (root + "models/" + model + ".json").str();
  const ZipArchive::Member *member = zip.find(name);
  if (!member)
    return fail("has no member '" + name + "'");
  return zip.readChecked(*member);
}

Error PT2Archive::readConfig(StringRef folder, StringRef member,
                             std::vector<PT2Payload> &payloads) const {
  const ZipArchive::Member *config = zip.find((root + folder + member).str());
  if (!config)
    return Error::success();
  Expected<StringRef> text = zip.readChecked(*config);
  if (!text)
    return text.takeError();
  Expected<llvm::json::Value> json = pt2::parseJSON(*text);
  if (!json)
    return fail(member + ": " + llvm::toString(json.takeError()));
  const llvm::json::Object *top = json->getAsObject();
  const llvm::json::Object *entries = top ? top->getObject("config") : nullptr;
  if (!entries)
    return fail(member + ": expected an object 'config'");

  for (const auto &[name, value] : *entries) {
    const llvm::json::Object *entry = value.getAsObject();
    std::optional<StringRef> file =
        entry ? entry->getString("path_name") : std::nullopt;
    if (!file)
      return fail(member + ": '" + StringRef(name) + "' names no payload");
    PT2Payload payload;
    payload.name = StringRef(name).str();
    payload.member = (root + folder + *file).str();
    payload.isParameter = entry->getBoolean("is_param").value_or(false);
    payload.isOpaque = entry->getBoolean("use_pickle").value_or(false);
    const ZipArchive::Member *data = zip.find(payload.member);
    if (!data)
      return fail("has no member '" + payload.member + "' for '" +
                  payload.name + "'");
    if (!payload.isOpaque) {
      Expected<StringRef> bytes = zip.read(*data);
      if (!bytes)
        return bytes.takeError();
      payload.bytes = *bytes;
    }
    payloads.push_back(std::move(payload));
  }
  return Error::success();
}

Expected<std::vector<PT2Payload>> PT2Archive::payloads(StringRef model) const {
  std::vector<PT2Payload> result;
  // Writers before 2.9 use the second name of each pair.
  const std::pair<const char *, const char *> configs[] = {
      {"data/weights/", "_weights_config.json"},
      {"data/weights/", "_model_param_config.json"},
      {"data/constants/", "_constants_config.json"},
      {"data/constants/", "_model_constants_config.json"}};
  for (auto [folder, suffix] : configs)
    if (Error error = readConfig(folder, (model + suffix).str(), result))
      return error;
  llvm::sort(result, [](const PT2Payload &a, const PT2Payload &b) {
    return a.name < b.name;
  });
  return result;
}
