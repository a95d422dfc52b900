// The header in C++17, behind owning pointers.
#include "esker.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>

namespace {

template <auto Free> struct Freed {
  template <class T> void operator()(T *handle) const { Free(handle); }
};

using Database = std::unique_ptr<esker_db, Freed<esker_db_free>>;
using Keyspace = std::unique_ptr<esker_keyspace, Freed<esker_keyspace_free>>;
using Iterator = std::unique_ptr<esker_iter, Freed<esker_iter_free>>;
using Value = std::unique_ptr<esker_value, Freed<esker_value_free>>;
using Failure = std::unique_ptr<esker_error, Freed<esker_error_free>>;

void check(esker_code code, esker_error *error) {
  Failure owned(error);
  if (code != ESKER_OK) {
    throw std::runtime_error(std::string(esker_code_name(code)) + ": " +
                             esker_error_message(error));
  }
}

void require(bool holds, const char *what) {
  if (!holds) {
    throw std::logic_error(what);
  }
}

void run(const std::string &path) {
  esker_error *error = nullptr;
  esker_db *opened = nullptr;
  check(esker_open(path.data(), path.size(), nullptr, &opened, &error), error);
  Database db(opened);
  esker_keyspace *found = nullptr;
  check(esker_keyspace_open(db.get(), "fruit", ESKER_NUL, nullptr, &found, &error), error);
  Keyspace fruit(found);
  for (std::string_view name : {"pear", "apple", "plum"}) {
    check(esker_put(fruit.get(), name.data(), name.size(), name.data(), 1,
                    ESKER_DURABILITY_PROCESS, &error),
          error);
  }
  esker_value *taken = nullptr;
  check(esker_get(fruit.get(), "plum", 4, &taken, &error), error);
  Value value(taken);
  std::size_t length = 0;
  const char *data = esker_value_data(value.get(), &length);
  require(std::string_view(data, length) == "p", "the value of plum is p");

  esker_iter *made = nullptr;
  check(esker_iter_new(fruit.get(), nullptr, nullptr, 0, nullptr, 0, &made, &error), error);
  Iterator iter(made);
  std::string seen;
  for (check(esker_iter_first(iter.get(), &error), error); esker_iter_valid(iter.get());
       check(esker_iter_next(iter.get(), &error), error)) {
    const char *key = esker_iter_key(iter.get(), &length);
    seen.append(key, length).append(" ");
  }
  require(seen == "apple pear plum ", "the keys are in order");

  // A transaction that begins anew, with operands of an operator that comes with the engine.
  esker_keyspace_options *made_with = esker_keyspace_options_new();
  check(esker_keyspace_options_set_merge_operator(made_with, "esker.counter-u64", ESKER_NUL, &error),
        error);
  found = nullptr;
  check(esker_keyspace_open_with(db.get(), "counts", ESKER_NUL, made_with, &found, &error), error);
  Keyspace counts(found);
  esker_keyspace_options_free(made_with);
  auto count = [](void *context, esker_txn *txn, esker_error **place) -> std::int32_t {
    const std::uint64_t two = 2;
    return esker_txn_merge(txn, static_cast<esker_keyspace *>(context), "pears", 5, &two,
                           sizeof two, place);
  };
  for (int turn = 0; turn < 3; turn++) {
    check(esker_transact(db.get(), ESKER_DURABILITY_DEFAULT, count, counts.get(), &error), error);
  }
  check(esker_get(counts.get(), "pears", 5, &taken, &error), error);
  value.reset(taken);
  data = esker_value_data(value.get(), &length);
  require(length == 8 && data[0] == 6 && data[7] == 0, "two were counted three times");

  // A branch takes what a database takes.
  esker_db *made_branch = nullptr;
  check(esker_branch(db.get(), "trial", ESKER_NUL, &made_branch, &error), error);
  Database trial(made_branch);
  found = nullptr;
  check(esker_keyspace_open(trial.get(), "fruit", ESKER_NUL, nullptr, &found, &error), error);
  Keyspace other(found);
  check(esker_delete(other.get(), "plum", 4, ESKER_DURABILITY_DEFAULT, &error), error);
  bool there = false;
  check(esker_contains(fruit.get(), "plum", 4, &there, &error), error);
  require(there, "the branch goes its own way");

  bool refused = false;
  try {
    check(esker_put(fruit.get(), nullptr, 3, "v", 1, 0, &error), error);
  } catch (const std::runtime_error &) {
    refused = true;
  }
  require(refused, "NULL with a length is refused");
}

} // namespace

int main(int count, char **arguments) {
  if (count != 2) {
    return 2;
  }
  try {
    run(std::string(arguments[1]) + "/db");
  } catch (const std::exception &error) {
    std::fprintf(stderr, "classes: %s\n", error.what());
    return 1;
  }
  std::puts("classes: ok");
  return 0;
}
