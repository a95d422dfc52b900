// LevelDB's C++ interface over its C interface, which the Rust half of this library answers.
//
// It is compiled against LevelDB's own public headers, so the classes that programs know have the
// layout that programs were compiled with. What the headers only declare is defined here: the
// database as a class over leveldb_t, and the small things that stand for themselves (statuses,
// batches, caches, filters, the default order). Env is in env.cc. Table, TableBuilder, DumpFile
// and NewMemEnv are not here: they are about LevelDB's files, of which there are none.
//
// Errors cross the C interface as text. Each begins with its kind, so nothing is lost.

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "leveldb/c.h"
#include "leveldb/cache.h"
#include "leveldb/comparator.h"
#include "leveldb/db.h"
#include "leveldb/env.h"
#include "leveldb/filter_policy.h"
#include "leveldb/iterator.h"
#include "leveldb/options.h"
#include "leveldb/slice.h"
#include "leveldb/status.h"
#include "leveldb/write_batch.h"

extern "C" {
// Of the Rust half, and of nobody else's: they spare copies.
void esker_leveldb_write_rep(leveldb_t* db, const leveldb_writeoptions_t* options, const char* rep,
                             size_t len, char** errptr);
uint8_t esker_leveldb_get_with(leveldb_t* db, const leveldb_readoptions_t* options, const char* key,
                               size_t keylen, void (*take)(void*, const char*, size_t), void* state,
                               char** errptr);
}

namespace leveldb {

// ---- Status --------------------------------------------------------------------------------

// The state of an error is one array: four bytes for the length of the message, one for the
// code, and the message.
namespace {
constexpr size_t kStatusHeader = 5;

// The kinds, in the order of their codes, as messages begin.
const char* const kKinds[] = {"OK",          "NotFound: ",         "Corruption: ",
                              "Not implemented: ", "Invalid argument: ", "IO error: "};

uint32_t StatusLength(const char* state) {
  uint32_t length;
  std::memcpy(&length, state, sizeof(length));
  return length;
}
}  // namespace

const char* Status::CopyState(const char* state) {
  const size_t size = kStatusHeader + StatusLength(state);
  char* copy = new char[size];
  std::memcpy(copy, state, size);
  return copy;
}

Status::Status(Code code, const Slice& msg, const Slice& msg2) {
  assert(code != kOk);
  std::string message = msg.ToString();
  if (!msg2.empty()) {
    message.append(": ").append(msg2.data(), msg2.size());
  }
  const uint32_t length = static_cast<uint32_t>(message.size());
  char* state = new char[kStatusHeader + length];
  std::memcpy(state, &length, sizeof(length));
  state[4] = static_cast<char>(code);
  std::memcpy(state + kStatusHeader, message.data(), length);
  state_ = state;
}

std::string Status::ToString() const {
  if (state_ == nullptr) {
    return kKinds[kOk];
  }
  const size_t code = static_cast<unsigned char>(state_[4]);
  std::string text = code < std::size(kKinds) ? kKinds[code] : "Unknown code: ";
  return text.append(state_ + kStatusHeader, StatusLength(state_));
}

namespace {

// The status that an error of the C interface tells; frees the error.
Status TakeError(char* error) {
  if (error == nullptr) {
    return Status::OK();
  }
  const std::string text(error);
  leveldb_free(error);
  const auto rest = [&text](const char* kind) { return Slice(text).starts_with(kind); };
  const auto message = [&text](const char* kind) { return text.substr(std::strlen(kind)); };
  if (rest(kKinds[1])) return Status::NotFound(message(kKinds[1]));
  if (rest(kKinds[2])) return Status::Corruption(message(kKinds[2]));
  if (rest(kKinds[3])) return Status::NotSupported(message(kKinds[3]));
  if (rest(kKinds[4])) return Status::InvalidArgument(message(kKinds[4]));
  if (rest(kKinds[5])) return Status::IOError(message(kKinds[5]));
  return Status::IOError(text);
}

}  // namespace

// ---- Comparator ----------------------------------------------------------------------------

Comparator::~Comparator() = default;

namespace {

class BytewiseComparatorImpl : public Comparator {
 public:
  int Compare(const Slice& a, const Slice& b) const override { return a.compare(b); }
  const char* Name() const override { return "leveldb.BytewiseComparator"; }

  void FindShortestSeparator(std::string* start, const Slice& limit) const override {
    const size_t least = std::min(start->size(), limit.size());
    size_t at = 0;
    while (at < least && (*start)[at] == limit[at]) {
      at++;
    }
    if (at >= least) {
      return;  // One is a prefix of the other.
    }
    const auto byte = static_cast<uint8_t>((*start)[at]);
    if (byte < 0xff && byte + 1 < static_cast<uint8_t>(limit[at])) {
      (*start)[at] = static_cast<char>(byte + 1);
      start->resize(at + 1);
    }
  }

  void FindShortSuccessor(std::string* key) const override {
    for (size_t at = 0; at < key->size(); at++) {
      const auto byte = static_cast<uint8_t>((*key)[at]);
      if (byte != 0xff) {
        (*key)[at] = static_cast<char>(byte + 1);
        key->resize(at + 1);
        return;
      }
    }
  }
};

}  // namespace

const Comparator* BytewiseComparator() {
  // Never destroyed: programs may use it while they end.
  static const Comparator* const comparator = new BytewiseComparatorImpl;
  return comparator;
}

// ---- FilterPolicy --------------------------------------------------------------------------

FilterPolicy::~FilterPolicy() = default;

namespace {

// A Bloom filter of its own. Esker's runs have others, whatever a program asks for.
class BloomFilterPolicy : public FilterPolicy {
 public:
  explicit BloomFilterPolicy(int bits_per_key)
      : bits_per_key_(static_cast<size_t>(std::max(bits_per_key, 1))),
        probes_(std::clamp<size_t>(bits_per_key_ * 69 / 100, 1, 30)) {}

  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }

  void CreateFilter(const Slice* keys, int n, std::string* dst) const override {
    const size_t wanted = std::max<size_t>(static_cast<size_t>(std::max(n, 0)) * bits_per_key_, 64);
    const size_t bytes = (wanted + 7) / 8;
    const size_t start = dst->size();
    dst->resize(start + bytes, 0);
    dst->push_back(static_cast<char>(probes_));
    for (int i = 0; i < n; i++) {
      Probe(keys[i], bytes * 8, probes_, [dst, start](size_t bit) {
        (*dst)[start + bit / 8] |= static_cast<char>(1 << (bit % 8));
        return true;
      });
    }
  }

  bool KeyMayMatch(const Slice& key, const Slice& filter) const override {
    if (filter.size() < 2) {
      return false;
    }
    const size_t bits = (filter.size() - 1) * 8;
    const size_t probes = static_cast<uint8_t>(filter[filter.size() - 1]);
    if (probes > 30) {
      return true;  // Of another kind, about which nothing is known.
    }
    return Probe(key, bits, probes, [&filter](size_t bit) {
      return (filter[bit / 8] & (1 << (bit % 8))) != 0;
    });
  }

 private:
  // Visits the bits of a key until one visit says no.
  template <typename Visit>
  static bool Probe(const Slice& key, size_t bits, size_t probes, Visit visit) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < key.size(); i++) {
      hash = (hash ^ static_cast<uint8_t>(key[i])) * 1099511628211u;
    }
    hash ^= hash >> 32;
    hash *= 0xd6e8feb86659fd93u;
    hash ^= hash >> 32;
    for (size_t i = 0; i < probes; i++) {
      // Each probe is mixed anew. In a filter of 64 bits, probes at one distance from each other have so few forms that
      // those of an absent key are often those of one that is there.
      hash += 0x9e3779b97f4a7c15u;
      uint64_t mixed = hash;
      mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
      mixed ^= mixed >> 31;
      if (!visit(mixed % bits)) {
        return false;
      }
    }
    return true;
  }

  const size_t bits_per_key_;
  const size_t probes_;
};

}  // namespace

const FilterPolicy* NewBloomFilterPolicy(int bits_per_key) {
  return new BloomFilterPolicy(bits_per_key);
}

// ---- Cache ---------------------------------------------------------------------------------

Cache::~Cache() = default;

namespace {

// A cache that lets go of what was used longest ago. A database takes its capacity as a wish for
// the size of Esker's own; programs may use it for themselves.
class LRUCache : public Cache {
 public:
  explicit LRUCache(size_t capacity) : capacity_(capacity) {}

  ~LRUCache() override {
    for (auto& found : table_) {
      found.second->cached = false;
      Unref(found.second);
    }
  }

  size_t capacity() const { return capacity_; }

  Handle* Insert(const Slice& key, void* value, size_t charge,
                 void (*deleter)(const Slice& key, void* value)) override {
    std::vector<Entry*> gone;
    auto* entry = new Entry{key.ToString(), value, charge, deleter, 1, false, {}};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (capacity_ > 0) {
        Drop(entry->key, &gone);
        entry->refs++;
        entry->cached = true;
        entry->place = order_.insert(order_.end(), entry);
        table_[entry->key] = entry;
        usage_ += charge;
        Shrink(capacity_, &gone);
      }
    }
    Delete(gone);
    return reinterpret_cast<Handle*>(entry);
  }

  Handle* Lookup(const Slice& key) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = table_.find(key.ToString());
    if (found == table_.end()) {
      return nullptr;
    }
    Entry* entry = found->second;
    entry->refs++;
    order_.splice(order_.end(), order_, entry->place);
    return reinterpret_cast<Handle*>(entry);
  }

  void Release(Handle* handle) override {
    std::vector<Entry*> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      auto* entry = reinterpret_cast<Entry*>(handle);
      if (--entry->refs == 0) {
        gone.push_back(entry);
      }
    }
    Delete(gone);
  }

  void* Value(Handle* handle) override { return reinterpret_cast<Entry*>(handle)->value; }

  void Erase(const Slice& key) override {
    std::vector<Entry*> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Drop(key.ToString(), &gone);
    }
    Delete(gone);
  }

  uint64_t NewId() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ++last_id_;
  }

  void Prune() override {
    std::vector<Entry*> gone;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      Shrink(0, &gone);
    }
    Delete(gone);
  }

  size_t TotalCharge() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return usage_;
  }

 private:
  struct Entry {
    std::string key;
    void* value;
    size_t charge;
    void (*deleter)(const Slice&, void*);
    // One for the cache while it is in it, and one for each handle.
    size_t refs;
    bool cached;
    std::list<Entry*>::iterator place;
  };

  // Takes the entry of a key out of the cache. The lock is held.
  void Drop(const std::string& key, std::vector<Entry*>* gone) {
    const auto found = table_.find(key);
    if (found == table_.end()) {
      return;
    }
    Entry* entry = found->second;
    table_.erase(found);
    order_.erase(entry->place);
    usage_ -= entry->charge;
    entry->cached = false;
    if (--entry->refs == 0) {
      gone->push_back(entry);
    }
  }

  // Takes out what nobody holds, the oldest first, until the rest fits. The lock is held.
  void Shrink(size_t capacity, std::vector<Entry*>* gone) {
    for (auto at = order_.begin(); at != order_.end() && usage_ > capacity;) {
      Entry* entry = *at++;
      if (entry->refs == 1) {
        Drop(entry->key, gone);
      }
    }
  }

  static void Unref(Entry* entry) {
    if (--entry->refs == 0) {
      Delete({entry});
    }
  }

  // Deleters are the program's, so none runs under the lock.
  static void Delete(const std::vector<Entry*>& entries) {
    for (Entry* entry : entries) {
      entry->deleter(entry->key, entry->value);
      delete entry;
    }
  }

  const size_t capacity_;
  mutable std::mutex mutex_;
  size_t usage_ = 0;
  uint64_t last_id_ = 0;
  std::list<Entry*> order_;
  std::unordered_map<std::string, Entry*> table_;
};

}  // namespace

Cache* NewLRUCache(size_t capacity) { return new LRUCache(capacity); }

// ---- Iterator ------------------------------------------------------------------------------

Iterator::Iterator() : cleanup_head_{nullptr, nullptr, nullptr, nullptr} {}

Iterator::~Iterator() {
  if (cleanup_head_.IsEmpty()) {
    return;
  }
  cleanup_head_.Run();
  for (CleanupNode* node = cleanup_head_.next; node != nullptr;) {
    node->Run();
    CleanupNode* next = node->next;
    delete node;
    node = next;
  }
}

void Iterator::RegisterCleanup(CleanupFunction function, void* arg1, void* arg2) {
  assert(function != nullptr);
  if (cleanup_head_.IsEmpty()) {
    cleanup_head_ = {function, arg1, arg2, nullptr};
  } else {
    cleanup_head_.next = new CleanupNode{function, arg1, arg2, cleanup_head_.next};
  }
}

namespace {

class EmptyIterator : public Iterator {
 public:
  explicit EmptyIterator(const Status& status) : status_(status) {}
  bool Valid() const override { return false; }
  void Seek(const Slice&) override {}
  void SeekToFirst() override {}
  void SeekToLast() override {}
  void Next() override { assert(false); }
  void Prev() override { assert(false); }
  Slice key() const override { return Slice(); }
  Slice value() const override { return Slice(); }
  Status status() const override { return status_; }

 private:
  const Status status_;
};

class EskerIterator : public Iterator {
 public:
  explicit EskerIterator(leveldb_iterator_t* iterator) : iterator_(iterator) {}
  ~EskerIterator() override { leveldb_iter_destroy(iterator_); }

  bool Valid() const override { return leveldb_iter_valid(iterator_) != 0; }
  void SeekToFirst() override { leveldb_iter_seek_to_first(iterator_); }
  void SeekToLast() override { leveldb_iter_seek_to_last(iterator_); }
  void Seek(const Slice& target) override {
    leveldb_iter_seek(iterator_, target.data(), target.size());
  }
  void Next() override { leveldb_iter_next(iterator_); }
  void Prev() override { leveldb_iter_prev(iterator_); }

  Slice key() const override {
    size_t size = 0;
    const char* data = leveldb_iter_key(iterator_, &size);
    return data == nullptr ? Slice() : Slice(data, size);
  }
  Slice value() const override {
    size_t size = 0;
    const char* data = leveldb_iter_value(iterator_, &size);
    return data == nullptr ? Slice() : Slice(data, size);
  }
  Status status() const override {
    char* error = nullptr;
    leveldb_iter_get_error(iterator_, &error);
    return TakeError(error);
  }

 private:
  leveldb_iterator_t* const iterator_;
};

}  // namespace

Iterator* NewEmptyIterator() { return new EmptyIterator(Status::OK()); }
Iterator* NewErrorIterator(const Status& status) { return new EmptyIterator(status); }

// ---- WriteBatch ----------------------------------------------------------------------------

// The bytes of a batch are described in src/rep.rs, which reads them when the batch is written.

namespace {

constexpr size_t kBatchHeader = 12;
constexpr size_t kBatchCount = 8;
constexpr char kDeletion = 0;
constexpr char kValue = 1;

uint32_t BatchCount(const std::string& rep) {
  uint32_t count = 0;
  for (size_t i = 0; i < 4; i++) {
    count |= static_cast<uint32_t>(static_cast<uint8_t>(rep[kBatchCount + i])) << (8 * i);
  }
  return count;
}

void AddToBatchCount(std::string* rep, uint32_t more) {
  const uint32_t count = BatchCount(*rep) + more;
  for (size_t i = 0; i < 4; i++) {
    (*rep)[kBatchCount + i] = static_cast<char>(count >> (8 * i));
  }
}

void PutBytes(std::string* rep, const Slice& bytes) {
  uint64_t length = bytes.size();
  for (; length >= 0x80; length >>= 7) {
    rep->push_back(static_cast<char>(length | 0x80));
  }
  rep->push_back(static_cast<char>(length));
  rep->append(bytes.data(), bytes.size());
}

bool TakeBytes(Slice* rest, Slice* bytes) {
  uint64_t length = 0;
  for (unsigned shift = 0; shift <= 56 && !rest->empty(); shift += 7) {
    const auto byte = static_cast<uint8_t>((*rest)[0]);
    rest->remove_prefix(1);
    length |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) {
      if (length > rest->size()) {
        return false;
      }
      *bytes = Slice(rest->data(), static_cast<size_t>(length));
      rest->remove_prefix(static_cast<size_t>(length));
      return true;
    }
  }
  return false;
}

}  // namespace

// A friend of the batch, by its name.
class WriteBatchInternal {
 public:
  static const std::string& Contents(const WriteBatch& batch) { return batch.rep_; }
};

WriteBatch::Handler::~Handler() = default;
WriteBatch::WriteBatch() { Clear(); }
WriteBatch::~WriteBatch() = default;

void WriteBatch::Clear() { rep_.assign(kBatchHeader, '\0'); }

void WriteBatch::Put(const Slice& key, const Slice& value) {
  AddToBatchCount(&rep_, 1);
  rep_.push_back(kValue);
  PutBytes(&rep_, key);
  PutBytes(&rep_, value);
}

void WriteBatch::Delete(const Slice& key) {
  AddToBatchCount(&rep_, 1);
  rep_.push_back(kDeletion);
  PutBytes(&rep_, key);
}

void WriteBatch::Append(const WriteBatch& source) {
  // A copy, because the two may be one.
  const std::string added = source.rep_.substr(kBatchHeader);
  AddToBatchCount(&rep_, BatchCount(source.rep_));
  rep_.append(added);
}

size_t WriteBatch::ApproximateSize() const { return rep_.size(); }

Status WriteBatch::Iterate(Handler* handler) const {
  if (rep_.size() < kBatchHeader) {
    return Status::Corruption("malformed WriteBatch (too small)");
  }
  Slice rest(rep_);
  rest.remove_prefix(kBatchHeader);
  uint32_t found = 0;
  Slice key, value;
  for (; !rest.empty(); found++) {
    const char kind = rest[0];
    rest.remove_prefix(1);
    if (kind == kValue) {
      if (!TakeBytes(&rest, &key) || !TakeBytes(&rest, &value)) {
        return Status::Corruption("bad WriteBatch Put");
      }
      handler->Put(key, value);
    } else if (kind == kDeletion) {
      if (!TakeBytes(&rest, &key)) {
        return Status::Corruption("bad WriteBatch Delete");
      }
      handler->Delete(key);
    } else {
      return Status::Corruption("unknown WriteBatch tag");
    }
  }
  if (found != BatchCount(rep_)) {
    return Status::Corruption("WriteBatch has wrong count");
  }
  return Status::OK();
}

// ---- Options -------------------------------------------------------------------------------

Options::Options() : comparator(BytewiseComparator()), env(Env::Default()) {}

namespace {

struct Destroy {
  void operator()(leveldb_options_t* options) const { leveldb_options_destroy(options); }
  void operator()(leveldb_comparator_t* order) const { leveldb_comparator_destroy(order); }
  void operator()(leveldb_cache_t* cache) const { leveldb_cache_destroy(cache); }
  void operator()(leveldb_readoptions_t* options) const { leveldb_readoptions_destroy(options); }
  void operator()(leveldb_writeoptions_t* options) const { leveldb_writeoptions_destroy(options); }
};

template <typename T>
using Owned = std::unique_ptr<T, Destroy>;

extern "C" {
// The program's comparator belongs to the program.
static void esker_keep_comparator(void*) {}

static int esker_compare(void* state, const char* a, size_t a_size, const char* b,
                         size_t b_size) noexcept {
  return static_cast<const Comparator*>(state)->Compare(Slice(a, a_size), Slice(b, b_size));
}

static const char* esker_comparator_name(void* state) noexcept {
  return static_cast<const Comparator*>(state)->Name();
}
}

// A program's options for the C interface, and what must live as long as they do.
struct Converted {
  Owned<leveldb_comparator_t> comparator;
  Owned<leveldb_options_t> options;
};

Status Convert(const Options& from, Converted* to) {
  if (from.env != nullptr && from.env != Env::Default()) {
    // To store where the program does not expect it would be worse than not to store.
    return Status::NotSupported("Esker uses the system's files: only Env::Default() is taken");
  }
  to->options.reset(leveldb_options_create());
  leveldb_options_t* options = to->options.get();
  if (from.comparator != nullptr && from.comparator != BytewiseComparator()) {
    to->comparator.reset(leveldb_comparator_create(const_cast<Comparator*>(from.comparator),
                                                   esker_keep_comparator, esker_compare,
                                                   esker_comparator_name));
    leveldb_options_set_comparator(options, to->comparator.get());
  }
  leveldb_options_set_create_if_missing(options, from.create_if_missing);
  leveldb_options_set_error_if_exists(options, from.error_if_exists);
  leveldb_options_set_write_buffer_size(options, from.write_buffer_size);
  leveldb_options_set_compression(options, from.compression);
  if (const auto* given = dynamic_cast<LRUCache*>(from.block_cache)) {
    const Owned<leveldb_cache_t> cache(leveldb_cache_create_lru(given->capacity()));
    leveldb_options_set_cache(options, cache.get());
  }
  return Status::OK();
}

}  // namespace

// ---- DB ------------------------------------------------------------------------------------

Snapshot::~Snapshot() = default;
DB::~DB() = default;

namespace {

class EskerSnapshot : public Snapshot {
 public:
  explicit EskerSnapshot(const leveldb_snapshot_t* snapshot)
      : snapshot_(snapshot), options_(leveldb_readoptions_create()) {
    leveldb_readoptions_set_snapshot(options_.get(), snapshot);
  }
  ~EskerSnapshot() override = default;

  const leveldb_snapshot_t* snapshot() const { return snapshot_; }
  const leveldb_readoptions_t* options() const { return options_.get(); }

 private:
  const leveldb_snapshot_t* const snapshot_;
  const Owned<leveldb_readoptions_t> options_;
};

extern "C" {
static void esker_assign(void* state, const char* data, size_t size) noexcept {
  static_cast<std::string*>(state)->assign(data, size);
}
}

class EskerDB : public DB {
 public:
  EskerDB(leveldb_t* db, Converted converted)
      : db_(db),
        comparator_(std::move(converted.comparator)),
        synced_(leveldb_writeoptions_create()) {
    leveldb_writeoptions_set_sync(synced_.get(), 1);
  }
  ~EskerDB() override { leveldb_close(db_); }

  Status Put(const WriteOptions& options, const Slice& key, const Slice& value) override {
    char* error = nullptr;
    leveldb_put(db_, Writing(options), key.data(), key.size(), value.data(), value.size(), &error);
    return TakeError(error);
  }

  Status Delete(const WriteOptions& options, const Slice& key) override {
    char* error = nullptr;
    leveldb_delete(db_, Writing(options), key.data(), key.size(), &error);
    return TakeError(error);
  }

  Status Write(const WriteOptions& options, WriteBatch* updates) override {
    if (updates == nullptr) {
      return Status::OK();
    }
    const std::string& rep = WriteBatchInternal::Contents(*updates);
    char* error = nullptr;
    esker_leveldb_write_rep(db_, Writing(options), rep.data(), rep.size(), &error);
    return TakeError(error);
  }

  Status Get(const ReadOptions& options, const Slice& key, std::string* value) override {
    char* error = nullptr;
    const uint8_t found = esker_leveldb_get_with(db_, Reading(options), key.data(), key.size(),
                                                 esker_assign, value, &error);
    if (error != nullptr) {
      return TakeError(error);
    }
    return found != 0 ? Status::OK() : Status::NotFound(Slice());
  }

  Iterator* NewIterator(const ReadOptions& options) override {
    return new EskerIterator(leveldb_create_iterator(db_, Reading(options)));
  }

  const Snapshot* GetSnapshot() override { return new EskerSnapshot(leveldb_create_snapshot(db_)); }

  void ReleaseSnapshot(const Snapshot* snapshot) override {
    const auto* held = static_cast<const EskerSnapshot*>(snapshot);
    if (held != nullptr) {
      leveldb_release_snapshot(db_, held->snapshot());
      delete held;
    }
  }

  bool GetProperty(const Slice& property, std::string* value) override {
    value->clear();
    char* text = leveldb_property_value(db_, property.ToString().c_str());
    if (text == nullptr) {
      return false;
    }
    value->assign(text);
    leveldb_free(text);
    return true;
  }

  void GetApproximateSizes(const Range* range, int n, uint64_t* sizes) override {
    for (int i = 0; i < n; i++) {
      const char* start = range[i].start.data();
      const char* limit = range[i].limit.data();
      const size_t start_size = range[i].start.size();
      const size_t limit_size = range[i].limit.size();
      leveldb_approximate_sizes(db_, 1, &start, &start_size, &limit, &limit_size, &sizes[i]);
    }
  }

  void CompactRange(const Slice* begin, const Slice* end) override {
    leveldb_compact_range(db_, begin != nullptr ? begin->data() : nullptr,
                          begin != nullptr ? begin->size() : 0,
                          end != nullptr ? end->data() : nullptr, end != nullptr ? end->size() : 0);
  }

 private:
  const leveldb_writeoptions_t* Writing(const WriteOptions& options) const {
    return options.sync ? synced_.get() : nullptr;
  }

  static const leveldb_readoptions_t* Reading(const ReadOptions& options) {
    const auto* snapshot = static_cast<const EskerSnapshot*>(options.snapshot);
    return snapshot != nullptr ? snapshot->options() : nullptr;
  }

  leveldb_t* const db_;
  const Owned<leveldb_comparator_t> comparator_;
  const Owned<leveldb_writeoptions_t> synced_;
};

}  // namespace

// What a subclass of the program's may call.
Status DB::Put(const WriteOptions& options, const Slice& key, const Slice& value) {
  WriteBatch batch;
  batch.Put(key, value);
  return Write(options, &batch);
}

Status DB::Delete(const WriteOptions& options, const Slice& key) {
  WriteBatch batch;
  batch.Delete(key);
  return Write(options, &batch);
}

Status DB::Open(const Options& options, const std::string& name, DB** dbptr) {
  *dbptr = nullptr;
  Converted converted;
  const Status status = Convert(options, &converted);
  if (!status.ok()) {
    return status;
  }
  char* error = nullptr;
  leveldb_t* db = leveldb_open(converted.options.get(), name.c_str(), &error);
  if (db != nullptr) {
    *dbptr = new EskerDB(db, std::move(converted));
  }
  return TakeError(error);
}

Status DestroyDB(const std::string& name, const Options& options) {
  Converted converted;
  const Status status = Convert(options, &converted);
  if (!status.ok()) {
    return status;
  }
  char* error = nullptr;
  leveldb_destroy_db(converted.options.get(), name.c_str(), &error);
  return TakeError(error);
}

Status RepairDB(const std::string& name, const Options& options) {
  Converted converted;
  const Status status = Convert(options, &converted);
  if (!status.ok()) {
    return status;
  }
  char* error = nullptr;
  leveldb_repair_db(converted.options.get(), name.c_str(), &error);
  return TakeError(error);
}

}  // namespace leveldb
