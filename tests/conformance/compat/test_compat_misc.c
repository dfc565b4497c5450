// SPDX-License-Identifier: BSD-2-Clause
/*
 * What existing consumers rely on beside placement and event dispatchers: attributes, memory of all
 * sorts, endless suppressed work, sizes, small stacks, and child processes in the middle of it.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "dto_util.h"

/* --- attributes --- */

/* COMPAT-10 EP-CREATE-38 EP-CREATE-82 */
static void ep_create__zero_sizes__mean_the_default(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET iov[2] = {dt_seg(&rig->x, 0, 10), dt_seg(&rig->x, 100, 10)};
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 20);

	rig->attr_a.max_message_size = rig->attr_a.max_rdma_size = 0;
	rig->attr_a.max_rdma_read_iov = rig->attr_a.max_rdma_write_iov = 0;
	rig_link(rig);
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 2, iov, 1, &remote, 0));
	expect_sent(&rig->a, 1, 20);
	assert_memory_equal(rig->y.p, rig->x.p, 10);
	assert_memory_equal(rig->y.p + 10, rig->x.p + 100, 10);
	rig_works(rig);
}

/* COMPAT-10 EP-CREATE-82 */
static void ep_create__large_attributes__accepted(void **state)
{
	struct rig *rig = *state;

	rig->attr_a.max_message_size = rig->attr_a.max_rdma_size = 2147483648u;
	rig->attr_a.max_recv_dtos = rig->attr_a.max_request_dtos = 20000;
	rig_link(rig);
	for (uint64_t i = 0; i < 20000; i++)
		dt_ok(dto_post_byte(rig, DTO_RECV, i, 0));
	dt_fails_with(dto_post_byte(rig, DTO_RECV, 1, 0), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_TEP);
	rig_works(rig);
}

/* COMPAT-10 EP-CREATE-81 */
static void ep_create__attributes_of_a_freed_endpoint__accepted(void **state)
{
	struct rig *rig = *state;
	DAT_EP_PARAM param;
	struct dt_ep first;

	dt_ep_create(&rig->ia, rig->ia.pz, NULL, &first);
	dt_ok(dat_ep_query(first.ep, DAT_EP_FIELD_ALL, &param));
	dt_ok(dat_ep_free(first.ep));
	rig->attr_a = rig->attr_b = param.ep_attr;
	rig_link(rig);
	rig_works(rig);
}

/* COMPAT-11 LMR-USE-12 */
static void post__garbage_in_pad__ignored(void **state)
{
	struct rig *rig = *state;
	DAT_LMR_TRIPLET from = dt_seg(&rig->x, 0, 100), into = dt_seg(&rig->y, 0, 100);
	DAT_LMR_TRIPLET back = dt_seg(&rig->x, 1000, 100);
	DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 200, 100);

	assert_int_equal(sizeof(DAT_LMR_TRIPLET), 24);
	assert_int_equal(sizeof(DAT_RMR_TRIPLET), 24);
	from.pad = into.pad = back.pad = remote.pad = 0xDEADBEEF;
	dt_ok(dto_post(DTO_RECV, rig->b.ep, 1, &into, 1, NULL, 0));
	dt_ok(dto_post(DTO_SEND, rig->a.ep, 1, &from, 2, NULL, 0));
	dt_ok(dto_post(DTO_WRITE, rig->a.ep, 1, &from, 3, &remote, 0));
	dt_ok(dto_post(DTO_READ, rig->a.ep, 1, &back, 4, &remote, 0));
	expect_received(&rig->b, 1, 100);
	for (uint64_t i = 2; i <= 4; i++)
		expect_sent(&rig->a, i, 100);
	assert_memory_equal(rig->y.p, rig->x.p, 100);
	assert_memory_equal(rig->x.p + 1000, rig->x.p, 100);
}

/* COMPAT-13 LMR-CREATE-57 */
static void calls__outputs_not_wanted__accepted(void **state)
{
	struct rig *rig = *state;
	const DAT_REGION_DESCRIPTION region = {.for_va = rig->x.p};
	DAT_LMR_HANDLE lmr;

	dt_ok(dat_lmr_create(rig->ia.ia, DAT_MEM_TYPE_VIRTUAL, region, 100, rig->ia.pz,
			     DAT_MEM_PRIV_ALL_FLAG, &lmr, NULL, NULL, NULL, NULL));
	dt_ok(dat_lmr_free(lmr));
	dt_ok(dat_ia_query(rig->ia.ia, NULL, 0, NULL, 0, NULL));
	dt_ok(dat_ia_query(rig->ia.ia, NULL, DAT_IA_FIELD_ALL, &rig->ia.attr, 0, NULL));
	dt_ok(dat_ia_query(rig->ia.ia, NULL, 0, NULL, DAT_PROVIDER_FIELD_ALL, &rig->ia.provider));
}

/* --- suppressed work --- */

/* COMPAT-12 DTO-16 */
static void post_rdma_write__100000_suppressed__slots_come_back(void **state)
{
	struct rig *rig = *state;
	const uint32_t n = DT_SLOW ? 5000 : 100000;
	DAT_LMR_TRIPLET seg = dt_seg(&rig->x, 0, 8);
	const DAT_RMR_TRIPLET remote = dt_rseg(&rig->y, 0, 8);
	const uint64_t end = dt_now_us() + 2 * (uint64_t)DT_WAIT_US;
	DAT_RETURN ret;

	rig->attr_a.max_request_dtos = 8;
	rig_link(rig);
	for (uint32_t i = 1; i <= n; i++) {
		while ((ret = dat_ep_post_rdma_write(rig->a.ep, 1, &seg, dt_cookie(i), &remote,
						     DAT_COMPLETION_SUPPRESS_FLAG)) !=
		       DAT_SUCCESS) {
			dt_fails_with(ret, DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_TEP);
			assert_true(dt_now_us() < end);
			sched_yield();
		}
	}
	memset(rig->x.p + 8, 0x44, 8);
	while ((ret = dat_ep_post_rdma_write(
			rig->a.ep, 1,
			&(DAT_LMR_TRIPLET){rig->x.lkey, 0, (uintptr_t)rig->x.p + 8, 8},
			dt_cookie(n + 1), &remote, 0)) != DAT_SUCCESS)
		assert_true(dt_now_us() < end);
	expect_sent(&rig->a, n + 1, 8); /* the first event at all */
	dt_check_bytes(rig->y.p, 8, 0x44);
	dt_no_event(rig->a.request);
}

/* --- memory of all sorts --- */

static unsigned char static_memory[10000];

/* A message, a Write and a Read through that memory, at both ends. */
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
			assert_int_equal(i, -1); /* says which one */
	}
	dt_check_bytes(to + at + words * 8, LARGE_LEN - words * 8, 0x55);
	dt_check_bytes(to + at - 5, 5, 0);
	dt_check_bytes(to + HUGE_LEN - 5, 5, 0);
	dt_ok(dat_lmr_free(source.lmr));
	dt_ok(dat_lmr_free(target.lmr));
	munmap(from, LARGE_LEN);
	munmap(to, HUGE_LEN);
}

#define EXPECTED_LEN (16ul * 1024 * 1024) /* what the consumer says it needs */
#define POSTED_LEN (100ul * 1024 * 1024)  /* and what it posts */

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
			assert_int_equal(i, -1); /* says which one */
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

/* --- threads --- */

static void use_calls(struct rig *rig)
{
	struct dt_ia ia;
	struct dt_buf buf;
	DAT_EP_PARAM ep_param;

	dt_ia_open(&ia);
	dt_buf_create(&ia, ia.pz, &buf, 30000, DAT_MEM_PRIV_ALL_FLAG);
	dt_buf_free(&buf);
	dt_ia_close(&ia);
	rig_link(rig);
	dt_ok(dat_ep_query(rig->a.ep, DAT_EP_FIELD_ALL, &ep_param));
	for (int i = 0; i < 20; i++)
		rig_works(rig);
	post_recv(&rig->b, dt_seg(&rig->y, 0, RIG_LEN), 1);
	post_send(&rig->a, dt_seg(&rig->x, 0, RIG_LEN), 2, 0);
	expect_sent(&rig->a, 2, RIG_LEN);
	expect_received(&rig->b, 1, RIG_LEN);
	post_recv(&rig->a, dt_seg(&rig->x, 0, 8), 3);
	dt_ok(dat_ep_disconnect(rig->a.ep, DAT_CLOSE_GRACEFUL_FLAG));
	expect_ended(&rig->a, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_ended(&rig->b, DAT_CONNECTION_EVENT_DISCONNECTED);
	expect_recv_flushed(&rig->a, 3);
	dt_ok(dat_ep_reset(rig->a.ep));
	dt_ep_free(&rig->a);
	dt_ep_free(&rig->b);
}

static void *small_stack_run(void *arg)
{
	use_calls(arg);
	return arg;
}

/* COMPAT-38: the guard page below the stack catches what needs more */
static void calls__thread_with_64_kib_stack__work(void **state)
{
	struct rig *rig = *state;
	pthread_attr_t attr;
	pthread_t thread;
	void *result;

	pthread_attr_init(&attr);
	assert_int_equal(pthread_attr_setstacksize(&attr, DT_SLOW ? 1u << 20 : 65536), 0);
	assert_int_equal(pthread_create(&thread, &attr, small_stack_run, rig), 0);
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, rig);
	pthread_attr_destroy(&attr);
}

/* COMPAT-23: asked for without thread safety, and called from several threads all the same */
static void ia_open__not_thread_safe__still_ours(void **state)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia;

	(void)state;
	dt_ok(dat_ia_openv((DAT_NAME_PTR)(uintptr_t)dt_adapter(), 8, &async, &ia, DAT_VERSION_MAJOR,
			   DAT_VERSION_MINOR, DAT_FALSE));
	dt_ok(dat_ia_close(ia, DAT_CLOSE_GRACEFUL_FLAG));
}

/* --- both sides begin --- */

/* COMPAT-27: everybody posts a Receive and a Send as soon as he is connected, many times anew */
static void post_send__both_sides_at_once_after_established__no_loss(void **state)
{
	struct rig *rig = *state;

	for (unsigned round = 0; round < 50; round++) {
		struct dt_listener listener;

		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_a, &rig->a);
		dt_ep_create(&rig->ia, rig->ia.pz, &rig->attr_b, &rig->b);
		dt_listen(&rig->ia, &listener);
		dt_connect(&rig->ia, rig->a.ep, listener.qual);
		dt_ok(dat_cr_accept(dt_request(&listener), rig->b.ep, 0, NULL));
		/* whichever side is told first sends first */
		dt_expect_conn(rig->a.conn, rig->a.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		post_send(&rig->a, dt_seg(&rig->x, 0, 3000), 1, 0);
		post_recv(&rig->a, dt_seg(&rig->x, 10000, 3000), 2);
		dt_expect_conn(rig->b.conn, rig->b.ep, DAT_CONNECTION_EVENT_ESTABLISHED);
		post_send(&rig->b, dt_seg(&rig->y, 0, 3000), 3, 0);
		post_recv(&rig->b, dt_seg(&rig->y, 10000, 3000), 4);
		expect_sent(&rig->a, 1, 3000);
		expect_sent(&rig->b, 3, 3000);
		expect_received(&rig->a, 2, 3000);
		expect_received(&rig->b, 4, 3000);
		expect_quiet(&rig->a);
		expect_quiet(&rig->b);
		dt_unlisten(&listener);
		dt_ep_free(&rig->a);
		dt_ep_free(&rig->b);
	}
}

/* --- child processes --- */

struct traffic {
	struct rig *rig;
	_Atomic int must_stop;
	_Atomic unsigned rounds;
};

/* Writes and messages, every byte of them checked. */
static void *traffic_run(void *arg)
{
	struct traffic *traffic = arg;
	struct rig *rig = traffic->rig;

	while (!traffic->must_stop) {
		const unsigned round = ++traffic->rounds;
		const size_t len = 1 + round * 7919u % 20000;

		dt_fill(rig->x.p, len, round);
		post_recv(&rig->b, dt_seg(&rig->y, 0, 20000), round);
		post_write(&rig->a, dt_seg(&rig->x, 0, len), dt_rseg(&rig->y, 20000, len), 1, 0);
		post_send(&rig->a, dt_seg(&rig->x, 0, len), 2, 0);
		expect_received(&rig->b, round, len);
		expect_sent(&rig->a, 1, len);
		expect_sent(&rig->a, 2, len);
		dt_check_pattern(rig->y.p, len, round);
		dt_check_pattern(rig->y.p + 20000, len, round);
	}
	return arg;
}

static void run_children(void)
{
	char line[16] = "";
	FILE *pipe = popen("echo hello", "r");
	pid_t pid;
	int status;

	assert_int_equal(system("exit 3"), 3 << 8);
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	assert_string_equal(line, "hello\n");
	assert_int_equal(pclose(pipe), 0);
	pid = fork();
	assert_int_not_equal(pid, -1);
	if (pid == 0)
		_exit(5);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 5);
}

/* COMPAT-42 GEN-34: system, popen, fork under load; no data lost or torn */
static void fork_and_exec__under_traffic__data_intact(void **state)
{
	struct rig *rig = *state;
	struct traffic traffic = {.rig = rig};
	pthread_t thread;
	void *result;

	assert_int_equal(pthread_create(&thread, NULL, traffic_run, &traffic), 0);
	for (int i = 0; i < (DT_SLOW ? 5 : 30); i++) {
		const unsigned before = traffic.rounds;
		const uint64_t end = dt_now_us() + DT_WAIT_US;

		run_children();
		while (traffic.rounds < before + 2) {
			assert_true(dt_now_us() < end);
			sched_yield();
		}
	}
	traffic.must_stop = 1;
	assert_int_equal(pthread_join(thread, &result), 0);
	assert_ptr_equal(result, &traffic);
	expect_quiet(&rig->a);
	expect_quiet(&rig->b);
	rig_works(rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		rig_test_bare(ep_create__zero_sizes__mean_the_default),
		rig_test_bare(ep_create__large_attributes__accepted),
		rig_test_bare(ep_create__attributes_of_a_freed_endpoint__accepted),
		rig_test(post__garbage_in_pad__ignored),
		rig_test_bare(calls__outputs_not_wanted__accepted),
		rig_test_bare(post_rdma_write__100000_suppressed__slots_come_back),
		rig_test(lmr_create__any_memory__moves_data),
		rig_test(lmr_create__overlapping_and_duplicate__work),
		rig_test(rdma_write__hundred_megabytes_in_a_gigabyte__intact),
		rig_test_bare(rdma__hundred_megabytes_with_max_rdma_size_of_16__intact),
		rig_test_bare(calls__thread_with_64_kib_stack__work),
		cmocka_unit_test(ia_open__not_thread_safe__still_ours),
		rig_test_bare(post_send__both_sides_at_once_after_established__no_loss),
		rig_test(fork_and_exec__under_traffic__data_intact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
