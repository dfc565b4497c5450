// SPDX-License-Identifier: BSD-2-Clause
/*
 * The other memory types of dat_lmr_create: a region made from another region, and shared memory
 * with its cookie.
 */
#include "conf.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>

#define PAGE 4096u

/* --- a region made from a region --- */

static DAT_RETURN copy_region(struct dt_ia *ia, DAT_LMR_HANDLE source, DAT_VLEN length,
			      DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv, struct dt_buf *buf_out)
{
	const DAT_REGION_DESCRIPTION region = {.for_lmr_handle = source};
	DAT_VADDR address = 0;
	DAT_VLEN size = 0;
	const DAT_RETURN ret =
		dat_lmr_create(ia->ia, DAT_MEM_TYPE_LMR, region, length, pz, priv, &buf_out->lmr,
			       &buf_out->lkey, &buf_out->rkey, &size, &address);

	buf_out->p = (unsigned char *)(uintptr_t)address;
	buf_out->len = size;
	buf_out->mapped = 0;
	return ret;
}

/* LMR-CREATE-03 LMR-CREATE-04 LMR-CREATE-46 LMR-CREATE-48 */
static void lmr_create__from_lmr__same_range_whatever_the_length(void **state)
{
	static const DAT_VLEN lengths[] = {0, 1, 3 * PAGE - 11, 4 * PAGE, UINT64_MAX};
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(4 * PAGE);
	struct dt_buf source, copy;

	dt_lmr_create(&pair->ia, pair->ia.pz, p + 5, 3 * PAGE - 11, DAT_MEM_PRIV_ALL_FLAG, &source);
	for (size_t i = 0; i < COUNT_OF(lengths); i++) {
		dt_ok(copy_region(&pair->ia, source.lmr, lengths[i], pair->ia.pz,
				  DAT_MEM_PRIV_ALL_FLAG, &copy));
		assert_ptr_equal(copy.p, source.p);
		assert_int_equal(copy.len, source.len);
		assert_ptr_not_equal(copy.lmr, source.lmr);
		assert_int_not_equal(copy.lkey, source.lkey);
		assert_int_not_equal(copy.rkey, source.rkey);
		dt_buf_free(&copy);
	}
	dt_buf_free(&source);
	dt_mem_free(p, 4 * PAGE);
}

/* LMR-CREATE-05 LMR-CREATE-07 DTO-101 */
static void lmr_create__from_lmr_in_another_zone__each_serves_its_own(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf source, copy, target;
	DAT_PZ_HANDLE other;

	dt_ok(dat_pz_create(pair->ia.ia, &other));
	dt_buf_create(&pair->ia, other, &source, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&pair->ia, pair->ia.pz, &target, PAGE, DAT_MEM_PRIV_ALL_FLAG);
	dt_ok(copy_region(&pair->ia, source.lmr, 0, pair->ia.pz, DAT_MEM_PRIV_ALL_FLAG, &copy));
	dt_fill(source.p, PAGE, 5);
	dt_fails_with(conf_post_write(pair, dt_seg(&source, 0, PAGE), dt_rseg(&target, 0, PAGE), 1),
		      DAT_PROTECTION_VIOLATION, DAT_PROTECTION_READ);
	conf_write(pair, dt_seg(&copy, 0, PAGE), dt_rseg(&target, 0, PAGE));
	dt_check_pattern(target.p, PAGE, 5);
	/* For the peer too: the key of the copy works, and the key of the source no longer. */
	dt_fill(target.p, PAGE, 6);
	conf_write(pair, dt_seg(&target, 0, PAGE), dt_rseg(&copy, 0, PAGE));
	dt_check_pattern(source.p, PAGE, 6);
	dt_fill(target.p, PAGE, 7);
	dt_ok(conf_post_write(pair, dt_seg(&target, 0, PAGE), dt_rseg(&source, 0, PAGE), 2));
	conf_expect_refused(pair, 2);
	dt_check_pattern(source.p, PAGE, 6);
	dt_buf_free(&copy);
	dt_buf_free(&source);
	dt_buf_free(&target);
	dt_ok(dat_pz_free(other));
}

/* LMR-CREATE-06 DTO-101 */
static void lmr_create__from_lmr_with_other_privileges__each_has_its_own(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf source, wider, narrower;

	dt_buf_create(&pair->ia, pair->ia.pz, &source, PAGE, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	dt_ok(copy_region(&pair->ia, source.lmr, 0, pair->ia.pz, DAT_MEM_PRIV_ALL_FLAG, &wider));
	dt_ok(copy_region(&pair->ia, wider.lmr, 0, pair->ia.pz, DAT_MEM_PRIV_REMOTE_READ_FLAG,
			  &narrower));
	assert_int_equal(source.rkey, 0);
	dt_fill(source.p, PAGE / 2, 1);
	conf_write(pair, dt_seg(&source, 0, PAGE / 2), dt_rseg(&wider, PAGE / 2, PAGE / 2));
	dt_check_pattern(source.p + PAGE / 2, PAGE / 2, 1);
	dt_fails_with(conf_post_recv(pair, dt_seg(&source, 0, 8), 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_WRITE);
	dt_fails_with(conf_post_send(pair, dt_seg(&narrower, 0, 8), 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
	conf_read(pair, dt_seg(&wider, 0, 8), dt_rseg(&narrower, PAGE - 8, 8));
	dt_ok(conf_post_write(pair, dt_seg(&source, 0, 8), dt_rseg(&narrower, 0, 8), 2));
	conf_expect_refused(pair, 2);
	dt_buf_free(&narrower);
	dt_buf_free(&wider);
	dt_buf_free(&source);
}

/* LMR-CREATE-07 LMR-FREE-14 LMR-QUERY-14 */
static void lmr_create__from_lmr__lifetimes_are_separate(void **state)
{
	struct dt_pair *pair = *state;

	for (int source_first = 0; source_first < 2; source_first++) {
		unsigned char *p = dt_mem_alloc(2 * PAGE);
		struct dt_buf half[2];
		DAT_LMR_PARAM before, after;

		dt_lmr_create(&pair->ia, pair->ia.pz, p, 2 * PAGE, DAT_MEM_PRIV_ALL_FLAG, &half[0]);
		dt_ok(copy_region(&pair->ia, half[0].lmr, 0, pair->ia.pz, DAT_MEM_PRIV_ALL_FLAG,
				  &half[1]));
		struct dt_buf *gone = &half[source_first ? 0 : 1];
		struct dt_buf *left = &half[source_first ? 1 : 0];

		memset(&before, 0, sizeof(before));
		memset(&after, 0, sizeof(after));
		dt_ok(dat_lmr_query(left->lmr, DAT_LMR_FIELD_ALL, &before));
		dt_buf_free(gone);
		dt_ok(dat_lmr_query(left->lmr, DAT_LMR_FIELD_ALL, &after));
		assert_memory_equal(&before, &after, sizeof(before));
		dt_fill(p, PAGE, 9);
		conf_write(pair, dt_seg(left, 0, PAGE), dt_rseg(left, PAGE, PAGE));
		dt_check_pattern(p + PAGE, PAGE, 9);
		dt_buf_free(left);
		dt_mem_free(p, 2 * PAGE);
	}
}

/* LMR-CREATE-08 LMR-FREE-05 */
static void lmr_create__from_no_lmr__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf freed, copy;
	struct conf_bad bad;

	conf_bad_make(&pair->ia, &bad);
	conf_refuses(&bad, source, DAT_INVALID_HANDLE_LMR,
		     copy_region(&pair->ia, source, 64, pair->ia.pz, CONF_LOCAL, &copy));
	dt_fails_with(copy_region(&pair->ia, pair->ia.pz, 64, pair->ia.pz, CONF_LOCAL, &copy),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_buf_create(&pair->ia, pair->ia.pz, &freed, PAGE, CONF_LOCAL);
	const DAT_LMR_HANDLE gone = freed.lmr;

	dt_buf_free(&freed);
	dt_fails_with(copy_region(&pair->ia, gone, 64, pair->ia.pz, CONF_LOCAL, &copy),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
}

/* LMR-CREATE-08 GEN-19 EP-GEN-07: the source is a handle, so it comes before other arguments. */
static void lmr_create__from_no_lmr_with_bad_arguments__invalid_handle(void **state)
{
	struct dt_pair *pair = *state;
	const DAT_REGION_DESCRIPTION region = {.for_lmr_handle = pair->ia.pz};
	struct dt_buf copy;

	dt_fails_with(copy_region(&pair->ia, pair->ia.pz, 0, pair->ia.pz, (DAT_MEM_PRIV_FLAGS)0x100,
				  &copy),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
	dt_fails_with(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_LMR, region, 0, pair->ia.pz,
				     CONF_LOCAL, NULL, NULL, NULL, NULL, NULL),
		      DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_LMR);
}

/* LMR-CREATE-36 LMR-CREATE-56 */
static void lmr_create__from_lmr_with_bad_arguments__invalid_parameter(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf source, copy;
	DAT_REGION_DESCRIPTION region;

	dt_buf_create(&pair->ia, pair->ia.pz, &source, PAGE, CONF_LOCAL);
	region.for_lmr_handle = source.lmr;
	dt_fails_with(copy_region(&pair->ia, source.lmr, 0, pair->ia.pz, (DAT_MEM_PRIV_FLAGS)0x100,
				  &copy),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG6);
	dt_fails_with(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_LMR, region, 0, pair->ia.pz,
				     CONF_LOCAL, NULL, NULL, NULL, NULL, NULL),
		      DAT_INVALID_PARAMETER, DAT_INVALID_ARG7);
	dt_buf_free(&source);
}

/* --- shared memory --- */

static DAT_RETURN share(struct dt_ia *ia, void *p, size_t len, char *cookie, struct dt_buf *buf_out)
{
	DAT_REGION_DESCRIPTION region = {.for_va = NULL};

	memset(buf_out, 0, sizeof(*buf_out));
	region.for_shared_memory.virtual_address = p;
	region.for_shared_memory.shared_memory_id = (DAT_LMR_COOKIE)(void *)cookie;
	buf_out->p = p;
	buf_out->len = len;
	return dat_lmr_create(ia->ia, DAT_MEM_TYPE_SHARED_VIRTUAL, region, len, ia->pz,
			      DAT_MEM_PRIV_ALL_FLAG, &buf_out->lmr, &buf_out->lkey, &buf_out->rkey,
			      NULL, NULL);
}

static void check_cookie(const struct dt_buf *buf, const char *expected)
{
	DAT_LMR_PARAM param;

	dt_ok(dat_lmr_query(buf->lmr, DAT_LMR_FIELD_ALL, &param));
	assert_int_equal(param.mem_type, DAT_MEM_TYPE_SHARED_VIRTUAL);
	assert_ptr_equal(param.region_desc.for_shared_memory.virtual_address, buf->p);
	assert_memory_equal(*param.region_desc.for_shared_memory.shared_memory_id, expected,
			    DAT_LMR_COOKIE_SIZE);
}

static void *map_shared(int fd, size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0),
		       fd, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void check_moves_data(struct dt_pair *pair, struct dt_buf *buf)
{
	dt_fill(buf->p, PAGE, 77);
	memset(buf->p + PAGE, 0, PAGE);
	conf_write(pair, dt_seg(buf, 0, PAGE), dt_rseg(buf, PAGE, PAGE));
	dt_check_pattern(buf->p + PAGE, PAGE, 77);
	memset(buf->p, 0, PAGE);
	conf_send(pair, dt_seg(buf, PAGE, PAGE), dt_seg(buf, 0, PAGE));
	dt_check_pattern(buf->p, PAGE, 77);
}

/* LMR-CREATE-10 */
static void lmr_create__shared_memory_of_each_kind__moves_data(void **state)
{
	struct dt_pair *pair = *state;
	char cookie[DAT_LMR_COOKIE_SIZE] = {1};
	char name[64];
	const int memfd = memfd_create("share", MFD_CLOEXEC);

	snprintf(name, sizeof(name), "/dt-share-%d", (int)getpid());
	const int posix = shm_open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
	const int sysv = shmget(IPC_PRIVATE, 2 * PAGE, IPC_CREAT | 0600);

	assert_int_equal(shm_unlink(name), 0);
	assert_true(memfd >= 0 && posix >= 0 && sysv >= 0);
	assert_int_equal(ftruncate(memfd, 2 * PAGE) | ftruncate(posix, 2 * PAGE), 0);
	void *p[] = {map_shared(-1, 2 * PAGE), map_shared(memfd, 2 * PAGE),
		     map_shared(posix, 2 * PAGE), shmat(sysv, NULL, 0)};

	assert_int_equal(shmctl(sysv, IPC_RMID, NULL), 0);
	assert_int_equal(close(memfd) | close(posix), 0);
	for (size_t i = 0; i < COUNT_OF(p); i++) {
		struct dt_buf buf;

		dt_ok(share(&pair->ia, p[i], 2 * PAGE, cookie, &buf));
		check_moves_data(pair, &buf);
		dt_buf_free(&buf);
	}
	assert_int_equal(munmap(p[0], 2 * PAGE) | munmap(p[1], 2 * PAGE) | munmap(p[2], 2 * PAGE) |
				 shmdt(p[3]),
			 0);
}

/* LMR-CREATE-12 */
static void lmr_create__cookie_at_a_page_border__forty_bytes_are_read(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = map_shared(-1, PAGE);
	unsigned char *pages = map_shared(-1, 2 * PAGE);
	char *cookie = (char *)pages + PAGE - DAT_LMR_COOKIE_SIZE;
	struct dt_buf buf;

	dt_fill(cookie, DAT_LMR_COOKIE_SIZE, 40);
	assert_int_equal(munmap(pages + PAGE, PAGE), 0);
	dt_ok(share(&pair->ia, p, PAGE, cookie, &buf));
	check_cookie(&buf, cookie);
	dt_buf_free(&buf);
	munmap(pages, PAGE);
	munmap(p, PAGE);
}

/* LMR-CREATE-13 LMR-CREATE-14 LMR-QUERY-03 */
static void lmr_create__cookies_alike_up_to_the_last_byte__kept_apart(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = map_shared(-1, PAGE);
	char cookies[4][DAT_LMR_COOKIE_SIZE];
	struct dt_buf buf[4];

	for (size_t i = 0; i < 4; i++) {
		/* The second pair starts with a zero byte and differs only after it. */
		memset(cookies[i], i < 2 ? 0x5a : 0, DAT_LMR_COOKIE_SIZE);
		cookies[i][DAT_LMR_COOKIE_SIZE - 1] = (char)('a' + i);
		dt_ok(share(&pair->ia, p, PAGE, cookies[i], &buf[i]));
	}
	for (size_t i = 0; i < 4; i++)
		check_cookie(&buf[i], cookies[i]);
	for (size_t i = 0; i < 4; i++)
		dt_buf_free(&buf[i]);
	munmap(p, PAGE);
}

/* LMR-CREATE-15 LMR-QUERY-03 */
static void lmr_create__cookie_changed_afterwards__the_copy_counts(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = map_shared(-1, PAGE);
	char *cookie = dt_mem_alloc(DAT_LMR_COOKIE_SIZE);
	char original[DAT_LMR_COOKIE_SIZE];
	struct dt_buf buf;

	dt_fill(cookie, DAT_LMR_COOKIE_SIZE, 15);
	memcpy(original, cookie, sizeof(original));
	dt_ok(share(&pair->ia, p, PAGE, cookie, &buf));
	memset(cookie, 0xff, DAT_LMR_COOKIE_SIZE);
	check_cookie(&buf, original);
	dt_mem_free(cookie, DAT_LMR_COOKIE_SIZE);
	check_cookie(&buf, original);
	dt_buf_free(&buf);
	munmap(p, PAGE);
}

/* LMR-CREATE-16 LMR-CREATE-59 */
static void lmr_create__private_memory_as_shared__invalid_state(void **state)
{
	struct dt_pair *pair = *state;
	char cookie[DAT_LMR_COOKIE_SIZE] = {16};
	unsigned char *p = map_shared(-1, 3 * PAGE);
	struct dt_buf buf;

	/* The middle page becomes private. */
	assert_ptr_equal(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
			 p + PAGE);
	dt_fails(share(&pair->ia, p + PAGE, PAGE, cookie, &buf), DAT_INVALID_STATE);
	dt_fails(share(&pair->ia, p + PAGE + 100, 100, cookie, &buf), DAT_INVALID_STATE);
	dt_fails(share(&pair->ia, p, 3 * PAGE, cookie, &buf), DAT_INVALID_STATE);
	dt_fails(share(&pair->ia, p + 2 * PAGE - 1, PAGE, cookie, &buf), DAT_INVALID_STATE);
	dt_fails(share(&pair->ia, cookie, sizeof(cookie), cookie, &buf), DAT_INVALID_STATE);
	dt_ok(share(&pair->ia, p, PAGE, cookie, &buf));
	dt_buf_free(&buf);
	munmap(p, 3 * PAGE);
}

/* LMR-CREATE-17 */
static void lmr_create__null_cookie__invalid_parameter(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = map_shared(-1, PAGE);
	struct dt_buf buf;

	dt_fails_with(share(&pair->ia, p, PAGE, NULL, &buf), DAT_INVALID_PARAMETER,
		      DAT_INVALID_ARG3);
	munmap(p, PAGE);
}

struct shared_child {
	unsigned char *p;
	char cookie[DAT_LMR_COOKIE_SIZE];
};

static void move_in_child(struct dt_peer *peer, void *arg)
{
	struct shared_child *shared = arg;
	struct dt_pair pair;
	struct dt_buf mine, source;

	dt_pair_open(&pair);
	dt_ok(share(&pair.ia, shared->p, 2 * PAGE, shared->cookie, &mine));
	check_cookie(&mine, shared->cookie);
	dt_buf_create(&pair.ia, pair.ia.pz, &source, PAGE, CONF_LOCAL);
	dt_fill(source.p, PAGE, 11);
	conf_write(&pair, dt_seg(&source, 0, PAGE), dt_rseg(&mine, 0, PAGE));
	dt_peer_sync(peer); /* the first page is written */
	dt_peer_sync(peer); /* the second page is written by the parent */
	conf_send(&pair, dt_seg(&mine, PAGE, PAGE), dt_seg(&source, 0, PAGE));
	dt_check_pattern(source.p, PAGE, 12);
	dt_buf_free(&source);
	dt_buf_free(&mine);
	dt_pair_close(&pair);
}

/* LMR-CREATE-11 */
static void lmr_create__same_shared_memory_in_two_processes__both_move_data(void **state)
{
	struct shared_child shared = {.p = map_shared(-1, 2 * PAGE), .cookie = "one region"};
	struct dt_buf mine, source;
	struct dt_peer peer;
	struct dt_pair pair;

	(void)state;
	dt_peer_start(&peer, move_in_child, &shared);
	dt_pair_open(&pair);
	dt_ok(share(&pair.ia, shared.p, 2 * PAGE, shared.cookie, &mine));
	dt_buf_create(&pair.ia, pair.ia.pz, &source, PAGE, CONF_LOCAL);
	dt_peer_sync(&peer);
	dt_check_pattern(shared.p, PAGE, 11);
	dt_fill(source.p, PAGE, 12);
	conf_write(&pair, dt_seg(&source, 0, PAGE), dt_rseg(&mine, PAGE, PAGE));
	dt_peer_sync(&peer);
	dt_peer_join(&peer);
	dt_buf_free(&source);
	dt_buf_free(&mine);
	dt_pair_close(&pair);
	munmap(shared.p, 2 * PAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(lmr_create__from_lmr__same_range_whatever_the_length),
		dt_pair_test(lmr_create__from_lmr_in_another_zone__each_serves_its_own),
		dt_pair_test(lmr_create__from_lmr_with_other_privileges__each_has_its_own),
		dt_pair_test(lmr_create__from_lmr__lifetimes_are_separate),
		dt_pair_test(lmr_create__from_no_lmr__invalid_handle),
		dt_pair_test(lmr_create__from_no_lmr_with_bad_arguments__invalid_handle),
		dt_pair_test(lmr_create__from_lmr_with_bad_arguments__invalid_parameter),
		dt_pair_test(lmr_create__shared_memory_of_each_kind__moves_data),
		dt_pair_test(lmr_create__cookie_at_a_page_border__forty_bytes_are_read),
		dt_pair_test(lmr_create__cookies_alike_up_to_the_last_byte__kept_apart),
		dt_pair_test(lmr_create__cookie_changed_afterwards__the_copy_counts),
		dt_pair_test(lmr_create__private_memory_as_shared__invalid_state),
		dt_pair_test(lmr_create__null_cookie__invalid_parameter),
		cmocka_unit_test(lmr_create__same_shared_memory_in_two_processes__both_move_data),
	};

	return cmocka_run_group_tests_name("lmr types", tests, NULL, NULL);
}
