//===- Registry.cpp - a hash table that only grows ------------------------===//

#include "runtime/Launch/Registry.h"
#include <cstring>
#include <memory>

using namespace mp::runtime;

Registry &Registry::get() {
  // Never destroyed: kernels may run while the process ends.
  static auto *registry = new Registry;
  return *registry;
}

/// Mixes the length and sixteen words spread over the text. Two texts that
/// agree in these share a bucket; the comparison tells them apart.
static uint64_t hashOf(std::string_view text) {
  constexpr size_t samples = 16;
  constexpr uint64_t factor = 0x9E3779B97F4A7C15;
  uint64_t hash = text.size() * factor;
  if (text.size() < sizeof(uint64_t)) {
    for (char c : text)
      hash = (hash ^ uint8_t(c)) * factor;
    return hash;
  }
  size_t last = text.size() - sizeof(uint64_t);
  for (size_t i = 0; i != samples; ++i) {
    uint64_t word;
    std::memcpy(&word, text.data() + last * i / (samples - 1), sizeof word);
    hash = (hash ^ word) * factor;
    hash ^= hash >> 29;
  }
  return hash;
}

Entry *Registry::lookUp(std::string_view text, size_t bucket) const {
  Entry *entry = buckets[bucket].load(std::memory_order_acquire);
  while (entry && entry->text != text)
    entry = entry->next;
  return entry;
}

Entry *Registry::find(std::string_view text, std::string &error) {
  size_t bucket = hashOf(text) % kBuckets;
  if (Entry *entry = lookUp(text, bucket))
    return entry;
  std::optional<Signature> signature = parseSignature(text, error);
  if (!signature)
    return nullptr;
  std::lock_guard<std::mutex> lock(adding);
  if (Entry *entry = lookUp(text, bucket))
    return entry;
  auto entry = std::make_unique<Entry>();
  entry->text = text;
  entry->signature = std::move(*signature);
  entry->next = buckets[bucket].load(std::memory_order_relaxed);
  buckets[bucket].store(entry.get(), std::memory_order_release);
  return entry.release();
}
