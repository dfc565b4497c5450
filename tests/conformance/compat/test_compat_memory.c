// SPDX-License-Identifier: BSD-2-Clause
/* What existing consumers expect of memory: large transfers are intact. */
#include <sys/mman.h>

#include "dto_util.h"

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
		rig_test(rdma_write__hundred_megabytes_in_a_gigabyte__intact),
		rig_test_bare(rdma__hundred_megabytes_with_max_rdma_size_of_16__intact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
