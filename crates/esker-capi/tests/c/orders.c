/* Comparators of a C program: stored by name, missing and mismatched, contexts destroyed once, and
 * a comparator that reaches for the iterator that called it. */
#include "check.h"

struct order {
  int sign;
  int destroyed;
  /* What the next comparison tries to move, to be refused. */
  esker_iter *meddle;
  esker_code refused;
};

static int compare(void *context, const char *a, size_t a_len, const char *b, size_t b_len) {
  struct order *order = context;
  size_t shorter = a_len < b_len ? a_len : b_len;
  int result = shorter == 0 ? 0 : memcmp(a, b, shorter);
  if (order->meddle != NULL) {
    esker_iter *iter = order->meddle;
    order->meddle = NULL;
    order->refused = esker_iter_next(iter, NULL);
    esker_iter_free(iter);
  }
  if (result == 0) {
    result = a_len < b_len ? -1 : a_len > b_len;
  }
  return result * order->sign;
}

static void destroy(void *context) {
  ((struct order *)context)->destroyed++;
}

static esker_comparator *comparator_of(const char *name, struct order *order) {
  esker_comparator *comparator = NULL;
  OK(esker_comparator_new(name, ESKER_NUL, compare, order, destroy, &comparator, &error));
  return comparator;
}

int main(int count, char **arguments) {
  struct order order = {-1, 0, NULL, ESKER_OK}, other = {1, 0, NULL, ESKER_OK};
  esker_comparator *comparator, *wrong;
  esker_options *options = esker_options_new();
  esker_db *db = NULL;
  esker_keyspace *ks = NULL;
  esker_iter *iter = NULL;
  esker_error *error = NULL;
  size_t length = 0;
  char path[4096];
  CHECK(count == 2);
  snprintf(path, sizeof path, "%s", below(arguments[1], "db"));

  comparator = comparator_of("reverse", &order);
  wrong = comparator_of("forward", &other);
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  OK(esker_keyspace_open(db, "news", ESKER_NUL, comparator, &ks, &error));
  OK(esker_put(ks, T("2024"), T("old"), 0, &error));
  OK(esker_put(ks, T("2025"), T("new"), 0, &error));
  OK(esker_iter_new(ks, NULL, NULL, 0, NULL, 0, &iter, &error));
  OK(esker_iter_first(iter, &error));
  CHECK(same(esker_iter_key(iter, &length), 4, "2025") && length == 4);
  OK(esker_iter_seek_back(iter, T("2024x"), &error));
  CHECK(same(esker_iter_key(iter, NULL), 4, "2025"));

  /* Under the iterator's own call nobody can move or free it. */
  order.meddle = iter;
  OK(esker_iter_seek(iter, T("2024"), &error));
  CHECK(order.refused == ESKER_MISUSE);
  CHECK(same(esker_iter_key(iter, NULL), 4, "2024"));
  esker_iter_free(iter);
  esker_keyspace_free(ks);

  FAILS(ESKER_COMPARATOR_MISMATCH, esker_keyspace_open(db, "news", 4, wrong, &ks, &error));
  CHECK(ks == NULL);
  OK(esker_flush(db, &error));
  OK(esker_close(db, &error));
  esker_db_free(db);

  /* Without it, the keyspace says what is missing; with it in the options, it is found. */
  OK(esker_open(path, ESKER_NUL, NULL, &db, &error));
  CHECK(esker_keyspace_open(db, "news", 4, NULL, &ks, &error) == ESKER_COMPARATOR_MISSING);
  CHECK(same(esker_error_keyspace(error, NULL), 4, "news"));
  CHECK(strstr(esker_error_message(error), "reverse") != NULL);
  esker_error_free(error);
  OK(esker_close(db, &error));
  esker_db_free(db);
  OK(esker_options_add_comparator(options, comparator, &error));
  esker_comparator_free(comparator);
  OK(esker_open(path, ESKER_NUL, options, &db, &error));
  esker_options_free(options);
  CHECK(order.destroyed == 0);
  OK(esker_keyspace_open(db, "news", 4, NULL, &ks, &error));
  CHECK(holds(ks, "2025", "new"));
  esker_keyspace_free(ks);
  OK(esker_close(db, &error));
  esker_db_free(db);
  CHECK(order.destroyed == 1);
  esker_comparator_free(wrong);
  CHECK(other.destroyed == 1);

  /* What is refused is not destroyed. */
  FAILS(ESKER_MISUSE, esker_comparator_new("x", 1, NULL, &other, destroy, &comparator, &error));
  FAILS(ESKER_INVALID_ARGUMENT,
        esker_comparator_new("", 0, compare, &other, destroy, &comparator, &error));
  CHECK(other.destroyed == 1 && comparator == NULL);
  puts("orders: ok");
  return 0;
}
