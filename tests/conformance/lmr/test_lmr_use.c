// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a registered region permits in transfers: privileges, refusals at the target, which break
 * the connection, and memory of every kind as source and target. ../dto/test_dto_segments.c tests refusals at
 * the post.
 */
#include "lmr_use.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>

_Static_assert(sizeof(DAT_LMR_TRIPLET) == 24, "LMR-USE-12");
_Static_assert(sizeof(DAT_RMR_TRIPLET) == 24, "LMR-USE-12");

/* --- privileges that suffice --- */

/* LMR-CREATE-39 LMR-CREATE-30 LMR-CREATE-31 */
static void post__one_local_privilege__its_uses_work(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf reads, writes, remote;

	create(pair, &reads, DAT_MEM_PRIV_LOCAL_READ_FLAG);
	create(pair, &writes, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	create(pair, &remote, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(reads.p, PAGE, 30);
	conf_send(pair, dt_seg(&reads, 0, PAGE), dt_seg(&writes, 0, PAGE));
	dt_check_pattern(writes.p, PAGE, 30);
	conf_write(pair, dt_seg(&writes, 0, PAGE), dt_rseg(&remote, 0, PAGE));
	dt_check_pattern(remote.p, PAGE, 30);
	memset(writes.p, 0, PAGE);
	conf_read(pair, dt_seg(&writes, 0, PAGE), dt_rseg(&remote, 0, PAGE));
	dt_check_pattern(writes.p, PAGE, 30);
	conf_send(pair, dt_seg(&writes, 0, PAGE), dt_seg(&remote, 0, PAGE));
	dt_buf_free(&reads);
	dt_buf_free(&writes);
	dt_buf_free(&remote);
}

/* LMR-CREATE-39 LMR-CREATE-30 LMR-CREATE-31: the same for a message of many entries */
static void post_send__long_with_one_local_privilege__arrives(void **state)
{
	const unsigned privs[] = {DAT_MEM_PRIV_LOCAL_READ_FLAG, DAT_MEM_PRIV_LOCAL_WRITE_FLAG};
	const size_t len = 64 * PAGE;
	struct dt_pair *pair = *state;
	struct dt_buf from, to;

	dt_buf_create(&pair->ia, pair->ia.pz, &to, len, DAT_MEM_PRIV_LOCAL_WRITE_FLAG);
	for (unsigned i = 0; i < 2; i++) {
		dt_buf_create(&pair->ia, pair->ia.pz, &from, len, (DAT_MEM_PRIV_FLAGS)privs[i]);
		dt_fill(from.p, len, 40 + i);
		conf_send(pair, dt_seg(&from, 0, len), dt_seg(&to, 0, len));
		dt_check_pattern(to.p, len, 40 + i);
		dt_buf_free(&from);
	}
	dt_buf_free(&to);
}

/* LMR-CREATE-32 LMR-CREATE-33 LMR-CREATE-34 LMR-CREATE-37 LMR-CREATE-42 DTO-88 */
static void post_rdma__one_remote_privilege__its_use_works(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf local, reads, writes, all;

	create(pair, &local, CONF_LOCAL);
	create(pair, &reads, DAT_MEM_PRIV_REMOTE_READ_FLAG);
	create(pair, &writes, DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	create(pair, &all, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(local.p, PAGE, 32);
	dt_fill(reads.p, PAGE, 33);
	conf_write(pair, dt_seg(&local, 0, PAGE), dt_rseg(&writes, 0, PAGE));
	dt_check_pattern(writes.p, PAGE, 32);
	conf_write(pair, dt_seg(&local, 0, PAGE), dt_rseg(&all, 0, PAGE));
	dt_check_pattern(all.p, PAGE, 32);
	conf_read(pair, dt_seg(&local, 0, PAGE), dt_rseg(&reads, 0, PAGE));
	dt_check_pattern(local.p, PAGE, 33);
	conf_read(pair, dt_seg(&local, 0, PAGE), dt_rseg(&all, 0, PAGE));
	dt_check_pattern(local.p, PAGE, 32);
	conf_send(pair, dt_seg(&all, 0, PAGE), dt_seg(&all, 0, PAGE));
	dt_buf_free(&local);
	dt_buf_free(&reads);
	dt_buf_free(&writes);
	dt_buf_free(&all);
}

/* --- mappings of the provider --- */

/* The memory of a buffer, and the number of its mappings in this process; 0: it has no file. */
struct mappings {
	const void *p;
	unsigned count;
};

static unsigned count_mappings(const void *p)
{
	FILE *maps = fopen("/proc/self/maps", "r");
	unsigned long low, high, inode, wanted = 0;
	unsigned count = 0;
	char line[512];

	assert_non_null(maps);
	for (int pass = 0; pass < 2; pass++) {
		rewind(maps);
		while (fgets(line, sizeof(line), maps)) {
			if (sscanf(line, "%lx-%lx %*s %*s %*s %lu", &low, &high, &inode) != 3)
				continue;
			if (!pass && low <= (uintptr_t)p && (uintptr_t)p < high)
				wanted = inode;
			count += pass && wanted && inode == wanted;
		}
	}
	fclose(maps);
	return count;
}

static bool is_as_often_mapped(void *arg)
{
	const struct mappings *before = arg;

	return count_mappings(before->p) == before->count;
}

/* LMR-FREE-13: a peer that mapped the memory, which keeps its pages, unmaps it */
static void lmr_free__mapped_by_the_peer__mapping_ends(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf local, target;
	struct mappings before;

	create(pair, &local, CONF_LOCAL);
	create(pair, &target, DAT_MEM_PRIV_ALL_FLAG);
	before = (struct mappings){target.p, count_mappings(target.p)};
	dt_map(&pair->a, dt_seg(&local, 0, 1), dt_rseg(&target, 0, 1));
	dt_ok(dat_lmr_free(target.lmr));
	dt_until(is_as_often_mapped, &before);
	target.lmr = DAT_HANDLE_NULL;
	dt_buf_free(&target);
	dt_buf_free(&local);
}

/* --- refusals at the target --- */

/* A Write and a Read through `to` must fail and leave the memory unchanged. */
static void check_write_refused(struct dt_pair *pair, struct dt_buf *local, DAT_RMR_TRIPLET to,
				const struct dt_buf *target)
{
	dt_fill(target->p, target->len, 90);
	dt_fill(local->p, PAGE, 91);
	dt_ok(conf_post_write(pair, dt_seg(local, 0, to.segment_length), to, 0x90));
	conf_expect_refused(pair, 0x90);
	dt_check_pattern(target->p, target->len, 90);
	conf_relink(pair);
}

static void check_read_refused(struct dt_pair *pair, struct dt_buf *local, DAT_RMR_TRIPLET from)
{
	dt_fill(local->p, PAGE, 92);
	dt_ok(conf_post_read(pair, dt_seg(local, 0, from.segment_length), from, 0x91));
	conf_expect_refused(pair, 0x91);
	conf_relink(pair);
}

/* LMR-USE-06 LMR-CREATE-38 DTO-92 DTO-94 */
static void post_rdma__without_the_remote_privilege__refused_and_broken(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf local, reads, writes;

	create(pair, &local, CONF_LOCAL);
	create(pair, &reads, CONF_LOCAL | DAT_MEM_PRIV_REMOTE_READ_FLAG);
	create(pair, &writes, CONF_LOCAL | DAT_MEM_PRIV_REMOTE_WRITE_FLAG);
	check_write_refused(pair, &local, dt_rseg(&reads, 0, 64), &reads);
	check_read_refused(pair, &local, dt_rseg(&writes, 0, 64));
	dt_buf_free(&local);
	dt_buf_free(&reads);
	dt_buf_free(&writes);
}

/* --- kinds of memory --- */

static void check_round_trip(struct dt_pair *pair, unsigned char *p, size_t len)
{
	struct dt_buf buf, other;

	dt_lmr_create(&pair->ia, pair->ia.pz, p, len, DAT_MEM_PRIV_ALL_FLAG, &buf);
	dt_buf_create(&pair->ia, pair->ia.pz, &other, len, DAT_MEM_PRIV_ALL_FLAG);
	dt_fill(p, len, 1);
	conf_write(pair, dt_seg(&buf, 0, len), dt_rseg(&other, 0, len));
	dt_check_pattern(other.p, len, 1);
	dt_fill(other.p, len, 2);
	conf_write(pair, dt_seg(&other, 0, len), dt_rseg(&buf, 0, len));
	dt_check_pattern(p, len, 2);
	dt_fill(other.p, len, 3);
	conf_send(pair, dt_seg(&other, 0, len), dt_seg(&buf, 0, len));
	dt_check_pattern(p, len, 3);
	dt_fill(p, len, 4);
	conf_read(pair, dt_seg(&other, 0, len), dt_rseg(&buf, 0, len));
	dt_check_pattern(other.p, len, 4);
	dt_fill(p, len, 5);
	conf_send(pair, dt_seg(&buf, 0, len), dt_seg(&other, 0, len));
	dt_check_pattern(other.p, len, 5);
	dt_buf_free(&other);
	dt_buf_free(&buf);
}

/* LMR-CREATE-27 LMR-CREATE-26 LMR-USE-11 COMPAT-14 */
static void lmr_create__heap_stack_static_and_file_memory__moves_data(void **state)
{
	static unsigned char fixed[3 * PAGE];
	struct dt_pair *pair = *state;
	unsigned char stack[PAGE];
	unsigned char *heap = malloc(100000);
	unsigned char *file;
	FILE *temporary = tmpfile();

	assert_non_null(heap);
	assert_non_null(temporary);
	assert_int_equal(ftruncate(fileno(temporary), 2 * PAGE), 0);
	file = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(temporary), 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	check_round_trip(pair, heap + 3, 100000 - 7);
	check_round_trip(pair, stack + 1, sizeof(stack) - 2);
	check_round_trip(pair, fixed + 5, sizeof(fixed) - 5);
	check_round_trip(pair, file, 2 * PAGE);
	munmap(file, 2 * PAGE);
	fclose(temporary);
	free(heap);
}

/* LMR-CREATE-18 */
static void lmr_create__so_virtual__moves_data(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(PAGE);
	const DAT_REGION_DESCRIPTION region = {.for_va = p};
	struct dt_buf buf = {.p = p, .len = PAGE};

	dt_ok(dat_lmr_create(pair->ia.ia, DAT_MEM_TYPE_SO_VIRTUAL, region, PAGE, pair->ia.pz,
			     DAT_MEM_PRIV_ALL_FLAG, &buf.lmr, &buf.lkey, &buf.rkey, NULL, NULL));
	dt_fill(p, PAGE / 2, 18);
	conf_write(pair, dt_seg(&buf, 0, PAGE / 2), dt_rseg(&buf, PAGE / 2, PAGE / 2));
	dt_check_pattern(p + PAGE / 2, PAGE / 2, 18);
	dt_buf_free(&buf);
	dt_mem_free(p, PAGE);
}

/* LMR-CREATE-52 COMPAT-14 */
static void lmr_create__overlapping_regions__work_on_their_own(void **state)
{
	struct dt_pair *pair = *state;
	unsigned char *p = dt_mem_alloc(2 * PAGE);
	struct dt_buf low, high, local;

	dt_lmr_create(&pair->ia, pair->ia.pz, p, PAGE + 100, DAT_MEM_PRIV_ALL_FLAG, &low);
	dt_lmr_create(&pair->ia, pair->ia.pz, p + PAGE - 100, PAGE, DAT_MEM_PRIV_REMOTE_READ_FLAG,
		      &high);
	create(pair, &local, CONF_LOCAL);
	dt_fill(local.p, 200, 52);
	conf_write(pair, dt_seg(&local, 0, 200), dt_rseg(&low, PAGE - 100, 200));
	memset(local.p, 0, 200);
	conf_read(pair, dt_seg(&local, 0, 200), dt_rseg(&high, 0, 200));
	dt_check_pattern(local.p, 200, 52);
	dt_ok(conf_post_write(pair, dt_seg(&local, 0, 8), dt_rseg(&high, 0, 8), 3));
	conf_expect_refused(pair, 3);
	dt_buf_free(&low);
	dt_buf_free(&high);
	dt_buf_free(&local);
	dt_mem_free(p, 2 * PAGE);
}

/* LMR-CREATE-43 */
static void lmr_create__keys_after_disconnect_and_free__still_good(void **state)
{
	struct dt_pair *pair = *state;
	struct dt_buf buf;

	create(pair, &buf, DAT_MEM_PRIV_ALL_FLAG);
	check_works(pair, &buf);
	dt_ok(dat_ep_disconnect(pair->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	dt_expect_conn(pair->a.conn, pair->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_expect_conn(pair->b.conn, pair->b.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ep_free(&pair->a);
	dt_ep_free(&pair->b);
	dt_ep_create(&pair->ia, pair->ia.pz, NULL, &pair->a);
	dt_ep_create(&pair->ia, pair->ia.pz, NULL, &pair->b);
	dt_ep_link(&pair->ia, &pair->a, &pair->b);
	check_works(pair, &buf);
	dt_buf_free(&buf);
}

struct thread_use {
	struct dt_pair *pair;
	struct dt_buf buf;
	pthread_mutex_t lock;
};

static void *post_from_thread(void *arg)
{
	struct thread_use *use = arg;
	DAT_LMR_TRIPLET from = dt_seg(&use->buf, 0, 64);
	DAT_RMR_TRIPLET to = dt_rseg(&use->buf, 64, 64);

	pthread_mutex_lock(&use->lock);
	const DAT_RETURN ret =
		dat_ep_post_rdma_write(use->pair->a.ep, 1, &from, dt_cookie(7), &to, 0);

	pthread_mutex_unlock(&use->lock);
	conf_try(ret);
	return NULL;
}

static void use_in_child(struct dt_peer *peer, void *arg)
{
	DAT_LMR_TRIPLET foreign;
	struct dt_pair pair;

	(void)arg;
	dt_pair_open(&pair);
	dt_peer_recv(peer, &foreign, sizeof(foreign));
	dt_fails_with(conf_post_send(&pair, foreign, 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_READ);
	dt_fails_with(conf_post_recv(&pair, foreign, 1), DAT_PRIVILEGES_VIOLATION,
		      DAT_PRIVILEGES_WRITE);
	dt_pair_close(&pair);
}

/* LMR-CREATE-47 LMR-CREATE-44 DTO-83 */
static void lmr_context__other_threads_and_processes__good_in_this_process_only(void **state)
{
	struct thread_use use = {.lock = PTHREAD_MUTEX_INITIALIZER};
	struct dt_peer peer;
	struct dt_pair pair;
	DAT_LMR_TRIPLET seg;

	(void)state;
	dt_peer_start(&peer, use_in_child, NULL);
	dt_pair_open(&pair);
	use.pair = &pair;
	create(&pair, &use.buf, DAT_MEM_PRIV_ALL_FLAG);
	conf_parallel(post_from_thread, &use);
	for (int i = 0; i < CONF_THREADS; i++)
		dt_expect_dto(pair.a.request, pair.a.ep, 7, DAT_DTO_SUCCESS, 64);
	seg = dt_seg(&use.buf, 0, 64);
	dt_peer_send(&peer, &seg, sizeof(seg));
	dt_peer_join(&peer);
	dt_buf_free(&use.buf);
	dt_pair_close(&pair);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		dt_pair_test(post__one_local_privilege__its_uses_work),
		dt_pair_test(post_send__long_with_one_local_privilege__arrives),
		dt_pair_test(lmr_free__mapped_by_the_peer__mapping_ends),
		dt_pair_test(post_rdma__one_remote_privilege__its_use_works),
		dt_pair_test(post_rdma__without_the_remote_privilege__refused_and_broken),
		dt_pair_test(lmr_create__heap_stack_static_and_file_memory__moves_data),
		dt_pair_test(lmr_create__so_virtual__moves_data),
		dt_pair_test(lmr_create__overlapping_regions__work_on_their_own),
		dt_pair_test(lmr_create__keys_after_disconnect_and_free__still_good),
		cmocka_unit_test(
			lmr_context__other_threads_and_processes__good_in_this_process_only),
	};

	return cmocka_run_group_tests_name("lmr use", tests, NULL, NULL);
}
