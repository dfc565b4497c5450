// SPDX-License-Identifier: BSD-2-Clause
/*
 * What existing consumers expect of memory: all sorts of it can be registered, also repeatedly, and
 * large transfers are intact.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>

#include "dto_util.h"

static unsigned char static_memory[10000];

/* Transfers a message, a Write and a Read through that memory, at both ends. */
static void round_trip(struct rig *rig, void *p, size_t len)
{
	struct dt_buf buf;

	dt_lmr_create(&rig->ia, rig->ia.pz, p, len, DAT_MEM_PRIV_ALL_FLAG, &buf);
	dt_fill(p, len, 77);
	post_recv(&rig->b, dt_seg(&rig->y, 0, len), 1);
	post_send(&rig->a, dt_seg(&buf, 0, len), 2, 0);
	expect_received(&rig->b, 1, len);
	expect_sent(&rig->a, 2, len);
	dt_check_pattern(rig->y.p, len, 77);
	dt_fill(rig->y.p, len, 78);
	post_recv(&rig->a, dt_seg(&buf, 0, len), 3);
	post_send(&rig->b, dt_seg(&rig->y, 0, len), 4, 0);
	expect_received(&rig->a, 3, len);
	expect_sent(&rig->b, 4, len);
	dt_check_pattern(p, len, 78);
	dt_fill(rig->x.p, len, 79);
	post_write(&rig->b, dt_seg(&rig->x, 0, len), dt_rseg(&buf, 0, len), 5, 0);
	expect_sent(&rig->b, 5, len);
	dt_check_pattern(p, len, 79);
	post_read(&rig->b, dt_seg(&rig->y, 0, len), dt_rseg(&buf, 0, len), 6, 0);
	expect_sent(&rig->b, 6, len);
	dt_check_pattern(rig->y.p, len, 79);
	dt_ok(dat_lmr_free(buf.lmr));
}

/* COMPAT-14 LMR-CREATE-26 LMR-CREATE-27 LMR-CREATE-49 */
static void lmr_create__any_memory__moves_data(void **state)
{
	struct rig *rig = *state;
	const size_t len = 9001;
	char path[] = "/tmp/dat-test-XXXXXX";
	unsigned char on_stack[10000];
	unsigned char *heap = malloc(10000);
	const int fd = mkstemp(path);
	unsigned char *file;

	assert_non_null(heap);
	assert_int_not_equal(fd, -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(ftruncate(fd, 3 * 4096), 0);
	file = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(file, MAP_FAILED);
	round_trip(rig, on_stack, len);
	round_trip(rig, on_stack + 1, len);
	round_trip(rig, static_memory + 3, len);
	round_trip(rig, heap, len);
	round_trip(rig, heap + 7, 1);
	round_trip(rig, file, len);
	round_trip(rig, file + 4095, 4098);
	free(heap);
	munmap(file, 3 * 4096);
	close(fd);
}

/* COMPAT-14 LMR-CREATE-52: the same memory registered twice, overlapping, and within itself */
static void lmr_create__overlapping_and_duplicate__work(void **state)
{
	struct rig *rig = *state;
	struct dt_buf same, overlap, inner;

	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p, RIG_LEN, DAT_MEM_PRIV_ALL_FLAG, &same);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p + 1000, 3000, DAT_MEM_PRIV_ALL_FLAG, &overlap);
	dt_lmr_create(&rig->ia, rig->ia.pz, rig->y.p + 3999, 1, DAT_MEM_PRIV_ALL_FLAG, &inner);
	post_write(&rig->a, dt_seg(&rig->x, 0, 5000), dt_rseg(&rig->y, 0, 5000), 1, 0);
	post_read(&rig->a, dt_seg(&rig->x, 10000, 5000), dt_rseg(&same, 0, 5000), 2, 0);
	post_read(&rig->a, dt_seg(&rig->x, 20000, 3000), dt_rseg(&overlap, 0, 3000), 3, 0);
	post_read(&rig->a, dt_seg(&rig->x, 30000, 1), dt_rseg(&inner, 0, 1), 4, 0);
	for (uint64_t i = 1; i <= 4; i++)
		expect_request(&rig->a, i, DAT_DTO_SUCCESS);
	assert_memory_equal(rig->x.p + 10000, rig->x.p, 5000);
	assert_memory_equal(rig->x.p + 20000, rig->x.p + 1000, 3000);
	assert_int_equal(rig->x.p[30000], rig->x.p[3999]);
	dt_ok(dat_lmr_free(same.lmr));
	post_read(&rig->a, dt_seg(&rig->x, 40000, 3000), dt_rseg(&overlap, 0, 3000), 5, 0);
	expect_sent(&rig->a, 5, 3000);
	assert_memory_equal(rig->x.p + 40000, rig->x.p + 1000, 3000);
}

/* --- large --- */

#define HUGE_LEN (1024ul * 1024 * 1024)
#define LARGE_LEN (100ul * 1024 * 1024 + 13)

static uint64_t *map_lazily(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

/* COMPAT-39 */
static void rdma_write__hundred_megabytes_in_a_gigabyte__intact(void **state)
{
	struct rig *rig = *state;
	const size_t at = HUGE_LEN - LARGE_LEN - 5;
	const size_t words = LARGE_LEN / 8;
	uint64_t *from = map_lazily(LARGE_LEN);
	unsigned char *to = (unsigned char *)map_lazily(HUGE_LEN);
	struct dt_buf source, target;
	uint64_t word;

	assert_true(rig->ia.attr.max_lmr_block_size >= HUGE_LEN);
	assert_true(rig->ia.attr.max_rdma_size >= LARGE_LEN);
	for (size_t i = 0; i < words; i++)
		from[i] = i * 0x9E3779B97F4A7C15u;
	memset((char *)from + words * 8, 0x55, LARGE_LEN - words * 8);
	dt_lmr_create(&rig->ia, rig->ia.pz, from, LARGE_LEN, DAT_MEM_PRIV_LOCAL_READ_FLAG, &source);
	dt_lmr_create(&rig->ia, rig->ia.pz, to, HUGE_LEN, DAT_MEM_PRIV_ALL_FLAG, &target);
	post_write(&rig->a, dt_seg(&source, 0, LARGE_LEN), dt_rseg(&target, at, LARGE_LEN), 1, 0);
	expect_sent(&rig->a, 1, LARGE_LEN);
	for (size_t i = 0; i < words; i++) {
		memcpy(&word, to + at + 8 * i, 8);
		if (word != i * 0x9E3779B97F4A7C15u)
			assert_int_equal(i, -1); /* names the index that is wrong */
	}
	dt_check_bytes(to + at + words * 8, LARGE_LEN - words * 8, 0x55);
	dt_check_bytes(to + at - 5, 5, 0);
	dt_check_bytes(to + HUGE_LEN - 5, 5, 0);
	dt_ok(dat_lmr_free(source.lmr));
	dt_ok(dat_lmr_free(target.lmr));
	munmap(from, LARGE_LEN);
	munmap(to, HUGE_LEN);
}

#define EXPECTED_LEN (16ul * 1024 * 1024) /* the size that the consumer announces */
#define POSTED_LEN (100ul * 1024 * 1024)  /* the size that it posts */

static void fill_words(struct dt_buf *buf, uint64_t factor)
{
	uint64_t *words = (uint64_t *)(void *)buf->p;

	for (size_t i = 0; i < buf->len / 8; i++)
		words[i] = (i + 1) * factor;
}

static void check_words(const struct dt_buf *buf, uint64_t factor)
{
	const uint64_t *words = (const uint64_t *)(const void *)buf->p;

	for (size_t i = 0; i < buf->len / 8; i++)
		if (words[i] != (i + 1) * factor)
			assert_int_equal(i, -1); /* names the index that is wrong */
}

/* COMPAT-45 EP-RDMAW-11 EP-RDMAR-10 */
static void rdma__hundred_megabytes_with_max_rdma_size_of_16__intact(void **state)
{
	struct rig *rig = *state;
	struct dt_buf from, to;
	DAT_EP_PARAM param;

	assert_true(rig->ia.attr.max_rdma_size >= POSTED_LEN);
	rig->attr_a.max_rdma_size = rig->attr_b.max_rdma_size = EXPECTED_LEN;
	rig_link(rig);
	dt_ok(dat_ep_query(rig->a.ep, DAT_EP_FIELD_ALL, &param));
	assert_true(param.ep_attr.max_rdma_size == EXPECTED_LEN);
	dt_buf_create(&rig->ia, rig->ia.pz, &from, POSTED_LEN, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_create(&rig->ia, rig->ia.pz, &to, POSTED_LEN, DAT_MEM_PRIV_ALL_FLAG);
	fill_words(&from, 0x9E3779B97F4A7C15u);
	post_write(&rig->a, dt_seg(&from, 0, POSTED_LEN), dt_rseg(&to, 0, POSTED_LEN), 1, 0);
	expect_sent(&rig->a, 1, POSTED_LEN);
	check_words(&to, 0x9E3779B97F4A7C15u);
	fill_words(&to, 3);
	post_read(&rig->a, dt_seg(&from, 0, POSTED_LEN), dt_rseg(&to, 0, POSTED_LEN), 2, 0);
	expect_sent(&rig->a, 2, POSTED_LEN);
	check_words(&from, 3);
	expect_quiet(&rig->a);
	dt_buf_free(&from);
	dt_buf_free(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test(lmr_create__any_memory__moves_data),
		rig_test(lmr_create__overlapping_and_duplicate__work),
		rig_test(rdma_write__hundred_megabytes_in_a_gigabyte__intact),
		rig_test_bare(rdma__hundred_megabytes_with_max_rdma_size_of_16__intact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
