// SPDX-License-Identifier: BSD-2-Clause
/*
 * The table of memory keys, from the owner's side and from a second process that maps it: what a
 * check accepts, how long a stale key stays stale, and that only the owner can write.
 */
#include "soft/key.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "peer.h"

#define TABLE_SIZE (SOFT_KEY_MAX * sizeof(struct soft_key_entry))
#define BASE UINT64_C(0x100000)
#define LEN UINT64_C(0x1000)
#define ALL (SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE)
#define PZ 7u

static struct soft_keys *make_keys(void)
{
	struct soft_keys *keys = NULL;

	assert_int_equal(soft_keys_create(&keys), 0);
	return keys;
}

static uint32_t add(struct soft_keys *keys)
{
	uint32_t key = 0;

	assert_int_equal(soft_keys_add(keys, BASE, LEN, ALL, PZ, &key), 0);
	assert_int_not_equal(key, 0);
	return key;
}

static int check(const struct soft_key_entry *entries, uint32_t key)
{
	return soft_key_check(entries, key, SOFT_RIGHT_REMOTE_WRITE, PZ, BASE, LEN);
}

static int check_range(struct soft_keys *keys, uint32_t key, uint64_t address, uint64_t length)
{
	return soft_key_check(soft_keys_entries(keys), key, SOFT_RIGHT_REMOTE_READ, PZ, address,
			      length);
}

/* --- checks --- */

static void key_check__ranges__only_inside(void **state)
{
	struct soft_keys *keys = make_keys();
	uint32_t key = add(keys);
	uint32_t top;

	(void)state;
	assert_int_equal(check_range(keys, key, BASE, LEN), 0);
	assert_int_equal(check_range(keys, key, BASE + 1, LEN - 1), 0);
	assert_int_equal(check_range(keys, key, BASE + LEN - 1, 1), 0);
	assert_int_equal(check_range(keys, key, BASE + LEN, 0), 0);
	assert_int_equal(check_range(keys, key, BASE - 1, 1), -EACCES);
	assert_int_equal(check_range(keys, key, BASE - 1, LEN), -EACCES);
	assert_int_equal(check_range(keys, key, BASE, LEN + 1), -EACCES);
	assert_int_equal(check_range(keys, key, BASE + 1, LEN), -EACCES);
	assert_int_equal(check_range(keys, key, BASE + LEN, 1), -EACCES);
	assert_int_equal(check_range(keys, key, BASE + LEN + 1, 0), -EACCES);
	/* sums that wrap */
	assert_int_equal(check_range(keys, key, BASE + 16, UINT64_MAX - 8), -EACCES);
	assert_int_equal(check_range(keys, key, UINT64_MAX, 2), -EACCES);
	assert_int_equal(check_range(keys, key, UINT64_MAX - 1, BASE + 2), -EACCES);
	assert_int_equal(check_range(keys, key, 0, UINT64_MAX), -EACCES);

	/* a region that ends with the address space */
	assert_int_equal(soft_keys_add(keys, UINT64_MAX - 15, 16, ALL, PZ, &top), 0);
	assert_int_equal(check_range(keys, top, UINT64_MAX - 15, 16), 0);
	assert_int_equal(check_range(keys, top, UINT64_MAX, 1), 0);
	assert_int_equal(check_range(keys, top, UINT64_MAX, 2), -EACCES);
	soft_keys_destroy(keys);
}

static void key_check__rights_and_zone__each_must_match(void **state)
{
	static const uint32_t rights[] = {SOFT_RIGHT_REMOTE_READ, SOFT_RIGHT_REMOTE_WRITE};
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);

	(void)state;
	for (uint32_t given = 0; given <= ALL; given++) {
		uint32_t key;

		assert_int_equal(soft_keys_add(keys, BASE, LEN, given, PZ, &key), 0);
		for (size_t i = 0; i < 2; i++) {
			int expected = given & rights[i] ? 0 : -EACCES;

			assert_int_equal(soft_key_check(entries, key, rights[i], PZ, BASE, 1),
					 expected);
			assert_int_equal(soft_key_check(entries, key, rights[i], PZ + 1, BASE, 1),
					 -EACCES);
		}
		/* a set of rights requires all of them */
		assert_int_equal(soft_key_check(entries, key, ALL, PZ, BASE, 1),
				 given == ALL ? 0 : -EACCES);
	}
	soft_keys_destroy(keys);
}

static void key_check__other_numbers__refused(void **state)
{
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);
	uint32_t key = add(keys);

	(void)state;
	assert_int_equal(check(entries, key), 0);
	assert_int_equal(check(entries, 0), -EACCES);
	assert_int_equal(check(entries, UINT32_MAX), -EACCES);
	for (uint32_t bit = 0; bit < 32; bit++)
		assert_int_equal(check(entries, key ^ (1u << bit)), -EACCES);
	soft_keys_destroy(keys);
}

static void keys_reserve__until_activated__dead(void **state)
{
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);
	uint32_t key, other;

	(void)state;
	assert_int_equal(soft_keys_reserve(keys, BASE, LEN, ALL, PZ, &key), 0);
	assert_int_equal(check(entries, key), -EACCES);
	soft_keys_activate(keys, key);
	assert_int_equal(check(entries, key), 0);
	soft_keys_invalidate(keys, key);
	assert_int_equal(check(entries, key), -EACCES);
	soft_keys_release(keys, key);
	assert_int_equal(check(entries, key), -EACCES);

	/* one that is released before it was live */
	assert_int_equal(soft_keys_reserve(keys, BASE, LEN, ALL, PZ, &other), 0);
	soft_keys_invalidate(keys, other);
	soft_keys_release(keys, other);
	assert_int_equal(check(entries, other), -EACCES);
	soft_keys_destroy(keys);
}

/* RDMAP-13 LMR-CREATE-44 */
static void keys_end_remote__any_rights__none_stays(void **state)
{
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);

	(void)state;
	for (uint32_t given = 1; given <= ALL; given++) {
		uint32_t key;

		assert_int_equal(soft_keys_add(keys, BASE, LEN, given, PZ, &key), 0);
		for (unsigned times = 0; times < 2; times++) {
			soft_keys_end_remote(keys, key);
			for (uint32_t right = 1; right <= ALL; right <<= 1)
				assert_int_equal(soft_key_check(entries, key, right, PZ, BASE, LEN),
						 -EACCES);
		}
		soft_keys_invalidate(keys, key);
		soft_keys_release(keys, key);
		assert_int_equal(soft_key_check(entries, key, 0, PZ, BASE, LEN), -EACCES);
	}
	soft_keys_destroy(keys);
}

/* --- reuse --- */

/* LMR-FREE-19 */
static void keys_add__after_release__index_rests(void **state)
{
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);
	uint32_t stale = add(keys);
	uint32_t uses = 0;

	(void)state;
	soft_keys_invalidate(keys, stale);
	soft_keys_release(keys, stale);
	/* the common pattern: register, use, free, again and again */
	for (uint32_t i = 0; i < 20 * SOFT_KEY_QUARANTINE; i++) {
		uint32_t key = add(keys);

		if (soft_key_index(key) == soft_key_index(stale)) {
			assert_true(i >= SOFT_KEY_QUARANTINE);
			uses++;
		}
		assert_int_not_equal(key, stale);
		assert_int_equal(check(entries, key), 0);
		assert_int_equal(check(entries, stale), -EACCES);
		soft_keys_invalidate(keys, key);
		soft_keys_release(keys, key);
		/* the table must not grow without limit */
		assert_true(soft_key_index(key) <= SOFT_KEY_QUARANTINE + 2);
	}
	/* the index was reused, with another generation each time */
	assert_true(uses >= 10);
	soft_keys_destroy(keys);
}

/* LMR-CREATE-58 LMR-FREE-19 */
static void keys_add__table_full__enospc_and_recovers(void **state)
{
	struct soft_keys *keys = make_keys();
	const struct soft_key_entry *entries = soft_keys_entries(keys);
	uint8_t *seen = calloc(1, SOFT_KEY_MAX);
	uint32_t last = 0, key = 0;

	(void)state;
	assert_non_null(seen);
	for (uint32_t i = SOFT_KEY_FIRST; i < SOFT_KEY_MAX; i++) {
		last = add(keys);
		assert_false(seen[soft_key_index(last)]);
		seen[soft_key_index(last)] = 1;
	}
	assert_false(seen[0]);
	assert_int_equal(soft_keys_add(keys, BASE, LEN, ALL, PZ, &key), -ENOSPC);
	assert_int_equal(soft_keys_reserve(keys, BASE, LEN, ALL, PZ, &key), -ENOSPC);
	assert_int_equal(key, 0);

	/* the only free index is reused at once; the old key stays stale */
	for (int i = 0; i < 100; i++) {
		soft_keys_invalidate(keys, last);
		soft_keys_release(keys, last);
		key = add(keys);
		assert_int_not_equal(key, last);
		assert_int_equal(check(entries, last), -EACCES);
		assert_int_equal(check(entries, key), 0);
		last = key;
	}
	free(seen);
	soft_keys_destroy(keys);
}

static void keys_create__several__generations_start_at_random(void **state)
{
	uint32_t first = 0;
	int same = 0;

	(void)state;
	for (int i = 0; i < 16; i++) {
		struct soft_keys *keys = make_keys();
		uint32_t key = add(keys);

		if (i == 0)
			first = key;
		else if (key == first)
			same++;
		soft_keys_destroy(keys);
	}
	/* by chance all 15 are equal once in 16384^15 */
	assert_true(same < 15);
}

/* LMR-FREE-07: the mark of a given key ends with the key, and is not inherited by another. */
static void give__key_in_use__marked_until_it_is_released(void **state)
{
	struct soft_keys *keys = make_keys();
	uint32_t key = add(keys);
	uint32_t other = add(keys);

	(void)state;
	assert_false(soft_keys_is_given(keys, key));
	assert_true(soft_keys_give(keys, key));
	assert_true(soft_keys_is_given(keys, key));
	assert_false(soft_keys_is_given(keys, other));
	soft_keys_invalidate(keys, key);
	assert_true(soft_keys_is_given(keys, key));
	soft_keys_release(keys, key);
	assert_false(soft_keys_give(keys, key));
	assert_false(soft_keys_give(keys, other + SOFT_KEY_MAX)); /* another generation */
	assert_false(soft_keys_give(keys, 0));
	assert_false(soft_keys_is_given(keys, other));
	/* until its index is reused */
	for (uint32_t used = other; soft_key_index(used) != soft_key_index(key);) {
		soft_keys_invalidate(keys, used);
		soft_keys_release(keys, used);
		used = add(keys);
		assert_false(soft_keys_is_given(keys, used));
	}
	soft_keys_destroy(keys);
}

#define WORKERS 4
#define WORKER_ROUNDS 5000

static void *worker(void *argument)
{
	struct soft_keys *keys = argument;
	const struct soft_key_entry *entries = soft_keys_entries(keys);
	uintptr_t errors = 0;

	for (uint32_t round = 0; round < WORKER_ROUNDS; round++) {
		uint64_t address = (uintptr_t)&errors + round;
		uint32_t key;

		if (soft_keys_add(keys, address, 16, ALL, PZ, &key))
			return (void *)1;
		/* another thread with the same index would change the entry */
		errors += soft_key_check(entries, key, ALL, PZ, address, 16) != 0;
		errors += soft_key_check(entries, key, ALL, PZ, address - 1, 16) == 0;
		soft_keys_invalidate(keys, key);
		errors += soft_key_check(entries, key, ALL, PZ, address, 16) == 0;
		soft_keys_release(keys, key);
		/* stale, and maybe used by another thread right now */
		errors += soft_key_check(entries, key, ALL, PZ, address, 16) == 0;
	}
	return (void *)errors;
}

static void keys__many_threads__no_index_shared(void **state)
{
	struct soft_keys *keys = make_keys();
	pthread_t threads[WORKERS];

	(void)state;
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, keys), 0);
	for (int i = 0; i < WORKERS; i++) {
		void *errors = (void *)1;

		assert_int_equal(pthread_join(threads[i], &errors), 0);
		assert_null(errors);
	}
	soft_keys_destroy(keys);
}

/* --- views --- */

static void keys_fd__peer__cannot_write(void **state)
{
	struct soft_keys *keys = make_keys();
	int fd = soft_keys_fd(keys);
	uint32_t key = add(keys);
	struct soft_view *view;

	(void)state;
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	assert_ptr_equal(mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
			 MAP_FAILED);
	assert_int_equal(pwrite(fd, "x", 1, 64), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_int_equal(ftruncate(fd, (off_t)(2 * TABLE_SIZE)), -1);
	assert_int_equal(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -1);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE), -1);
	assert_int_equal(soft_view_get(fd, &view), 0);
	assert_int_equal(
		mprotect((void *)(uintptr_t)soft_view_entries(view), 4096, PROT_READ | PROT_WRITE),
		-1);
	assert_int_equal(check(soft_view_entries(view), key), 0);
	soft_view_put(view);
	soft_keys_destroy(keys);
}

static void view_get__same_table__one_view(void **state)
{
	struct soft_keys *keys = make_keys();
	struct soft_keys *others = make_keys();
	int copy = dup(soft_keys_fd(keys));
	struct soft_view *first, *second, *other;
	uint32_t key = add(keys);

	(void)state;
	assert_int_equal(soft_view_get(soft_keys_fd(keys), &first), 0);
	assert_int_equal(soft_view_get(copy, &second), 0);
	assert_int_equal(soft_view_get(soft_keys_fd(others), &other), 0);
	assert_ptr_equal(first, second);
	assert_ptr_not_equal(first, other);
	close(copy);
	soft_view_put(first);
	assert_int_equal(check(soft_view_entries(second), key), 0);
	/* the view stays readable after the owner is gone */
	soft_keys_invalidate(keys, key);
	soft_keys_destroy(keys);
	assert_int_equal(check(soft_view_entries(second), key), -EACCES);
	soft_view_put(second);
	soft_view_put(other);
	soft_view_put(NULL);
	soft_keys_destroy(others);
	soft_keys_destroy(NULL);
}

/* A memory file as a hostile peer could send it. */
static int impostor(size_t size, unsigned int flags, int seals)
{
	int fd = memfd_create("impostor", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

	if (fd < 0)
		return -1;
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void check_refused(int fd)
{
	struct soft_view *view = NULL;

	assert_int_equal(soft_view_get(fd, &view), -EINVAL);
	assert_null(view);
	if (fd >= 0)
		close(fd);
}

static void view_get__not_a_table__einval(void **state)
{
	char path[] = "/tmp/soft-key-XXXXXX";
	int pair[2];
	int fd;

	(void)state;
	check_refused(-1);
	check_refused(impostor(TABLE_SIZE, 0, 0));
	check_refused(impostor(TABLE_SIZE, 0, F_SEAL_GROW));
	check_refused(impostor(TABLE_SIZE, 0, F_SEAL_SHRINK));
	check_refused(impostor(TABLE_SIZE - 4096, 0, F_SEAL_SHRINK | F_SEAL_GROW));
	check_refused(impostor(TABLE_SIZE + 4096, 0, F_SEAL_SHRINK | F_SEAL_GROW));
	fd = impostor(TABLE_SIZE, MFD_HUGETLB, F_SEAL_SHRINK | F_SEAL_GROW);
	if (fd >= 0)
		check_refused(fd);
	check_refused(open("/dev/zero", O_RDWR | O_CLOEXEC));
	assert_int_equal(pipe2(pair, O_CLOEXEC), 0);
	check_refused(pair[0]);
	check_refused(pair[1]);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	unlink(path);
	assert_int_equal(ftruncate(fd, (off_t)TABLE_SIZE), 0);
	check_refused(fd);
}

struct shared {
	int fd;
	uint32_t key;
	struct soft_view *inherited;
};

/* Finds the key live and then dead, in a mapping of its own. */
static int viewer_body(int channel, void *argument)
{
	struct shared *shared = argument;
	struct soft_view *view;

	/* the parent's mapping is not mapped here and must not be found */
	PEER_CHECK(soft_view_get(shared->fd, &view) == 0);
	PEER_CHECK(view != shared->inherited);
	PEER_CHECK(check(soft_view_entries(view), shared->key) == 0);
	PEER_CHECK(mmap(NULL, TABLE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0) ==
		   MAP_FAILED);
	PEER_CHECK(peer_signal(channel) == 0 && peer_await(channel) == 0);
	PEER_CHECK(check(soft_view_entries(view), shared->key) == -EACCES);
	soft_view_put(view);
	return 0;
}

static void view_get__second_process__sees_keys_live_and_die(void **state)
{
	struct soft_keys *keys = make_keys();
	struct shared shared = {.fd = dup(soft_keys_fd(keys)), .key = add(keys)};
	struct peer peer;

	(void)state;
	assert_int_equal(soft_view_get(shared.fd, &shared.inherited), 0);
	peer = peer_start(viewer_body, &shared);
	assert_int_equal(peer_await(peer.channel), 0);
	soft_keys_invalidate(keys, shared.key);
	assert_int_equal(peer_signal(peer.channel), 0);
	peer_finish(&peer);
	soft_keys_release(keys, shared.key);
	assert_int_equal(check(soft_view_entries(shared.inherited), shared.key), -EACCES);
	soft_view_put(shared.inherited);
	close(shared.fd);
	soft_keys_destroy(keys);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_check__ranges__only_inside),
		cmocka_unit_test(key_check__rights_and_zone__each_must_match),
		cmocka_unit_test(key_check__other_numbers__refused),
		cmocka_unit_test(keys_reserve__until_activated__dead),
		cmocka_unit_test(keys_end_remote__any_rights__none_stays),
		cmocka_unit_test(keys_add__after_release__index_rests),
		cmocka_unit_test(keys_add__table_full__enospc_and_recovers),
		cmocka_unit_test(keys_create__several__generations_start_at_random),
		cmocka_unit_test(give__key_in_use__marked_until_it_is_released),
		cmocka_unit_test(keys__many_threads__no_index_shared),
		cmocka_unit_test(keys_fd__peer__cannot_write),
		cmocka_unit_test(view_get__same_table__one_view),
		cmocka_unit_test(view_get__not_a_table__einval),
		cmocka_unit_test(view_get__second_process__sees_keys_live_and_die),
	};

	return cmocka_run_group_tests_name("soft key", tests, NULL, NULL);
}
