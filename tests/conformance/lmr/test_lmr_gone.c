// SPDX-License-Identifier: BSD-2-Clause
/*
 * Memory that the consumer unmaps or truncates while it is registered, or that was never writable
 * (LMR-USE-14, LMR-CREATE-23). RDMA of a peer completes and raises no signal where the initiator or
 * the kernel copies. A thread of the consumer may fault inside a call, and continues after a
 * handler has mapped the memory again. A thread of the library never faults.
 */
#include "conf.h"

#include <dat/opendat.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define PAGES 4u
#define LARGE (3 * PAGE) /* a Send of several entries of a ring */
#define FILLED 0x5a

/* The memory, and the counters of its fault handler. */
static struct {
	unsigned char *memory;
	pthread_t consumer;
	volatile sig_atomic_t faults;
	volatile sig_atomic_t foreign; /* in a thread other than the test's */
} gone;

/* Maps the memory again, empty, and returns to the access. */
static void repair(int number, siginfo_t *info, void *context)
{
	const uintptr_t offset = (uintptr_t)info->si_addr - (uintptr_t)gone.memory;

	(void)context;
	if (offset >= PAGES * PAGE) {
		signal(number, SIG_DFL);
		return;
	}
	gone.faults++;
	if (!pthread_equal(pthread_self(), gone.consumer))
		gone.foreign++;
	mmap(gone.memory, PAGES * PAGE, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

/* Unmaps the memory and reserves its addresses. */
static void unmap(void)
{
	assert_ptr_equal(mmap(gone.memory, PAGES * PAGE, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0),
			 gone.memory);
}

/* Replaces the memory with an empty file: an access raises SIGBUS. */
static void truncate_file(void)
{
	const int fd = memfd_create("gone", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_ptr_equal(mmap(gone.memory, PAGES * PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_FIXED, fd, 0),
			 gone.memory);
	close(fd);
}

struct fixture {
	struct dt_pair pair;
	struct dt_buf local;
	struct dt_buf target; /* in gone.memory */
};

static int setup(void **state)
{
	static struct fixture fixture;

	dt_pair_open(&fixture.pair);
	dt_buf_create(&fixture.pair.ia, fixture.pair.ia.pz, &fixture.local, PAGES * PAGE,
		      CONF_LOCAL);
	memset(fixture.local.p, FILLED, PAGES * PAGE);
	gone.memory = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			   -1, 0);
	assert_ptr_not_equal(gone.memory, MAP_FAILED);
	gone.consumer = pthread_self();
	gone.faults = 0;
	gone.foreign = 0;
	dt_lmr_create(&fixture.pair.ia, fixture.pair.ia.pz, gone.memory, PAGES * PAGE,
		      DAT_MEM_PRIV_ALL_FLAG, &fixture.target);
	*state = &fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	dt_buf_free(&fixture->target);
	dt_buf_free(&fixture->local);
	dt_pair_close(&fixture->pair);
	munmap(gone.memory, PAGES * PAGE);
	return 0;
}

/* Does a process on this adapter place what arrives with its own threads? */
static bool is_soft(void)
{
	const char *adapter = getenv("DAT_TEST_ADAPTER");

	return !adapter || strncmp(adapter, "soft", 4) == 0;
}

/* Does the target place the bytes of an RDMA Write itself? */
static bool is_ring(void)
{
	const char *copy = getenv("DAT_COPY");

	return dt_is_iwarp() || (copy && strcmp(copy, "ring") == 0);
}

/* The operation completes, with or without success. */
static void expect_end(struct dt_pair *pair, DAT_EVD_HANDLE evd, uint64_t cookie)
{
	const DAT_EVENT event = dt_event(evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *data = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_true(data->user_cookie.as_64 == cookie);
	if (data->status == DAT_DTO_SUCCESS && dt_ep_state(pair->a.ep) == DAT_EP_STATE_CONNECTED)
		return;
	conf_expect_broken(pair);
	conf_relink(pair);
}

/* From inside a test: cmocka has handlers of its own around each, which it takes away itself. */
static void handle_faults(void)
{
	const struct sigaction action = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};

	assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
	assert_int_equal(sigaction(SIGBUS, &action, NULL), 0);
}

static void check_rdma(struct fixture *fixture, void (*vanish)(void))
{
	struct dt_pair *pair = &fixture->pair;

	handle_faults();
	/* a peer that maps on first use has done so */
	conf_write(pair, dt_seg(&fixture->local, 0, PAGE), dt_rseg(&fixture->target, 0, PAGE));
	for (DAT_VLEN len = 8; len <= PAGE; len *= 512) {
		vanish();
		dt_ok(conf_post_write(pair, dt_seg(&fixture->local, 0, len),
				      dt_rseg(&fixture->target, 0, len), 1));
		expect_end(pair, pair->a.request, 1);
		vanish();
		dt_ok(conf_post_read(pair, dt_seg(&fixture->local, 0, len),
				     dt_rseg(&fixture->target, PAGE, len), 2));
		expect_end(pair, pair->a.request, 2);
	}
	if (!is_ring())
		assert_int_equal(gone.faults, 0);
	assert_int_equal(gone.foreign, 0);
}

/* LMR-USE-14 */
static void post_rdma__target_unmapped_meanwhile__ends_without_harm(void **state)
{
	check_rdma(*state, unmap);
}

/* LMR-USE-14 */
static void post_rdma__target_truncated_meanwhile__ends_without_harm(void **state)
{
	check_rdma(*state, truncate_file);
}

/* Polls for the next completion: a wait may leave the work to another thread. */
static DAT_DTO_COMPLETION_STATUS poll_for(DAT_EVD_HANDLE evd, uint64_t cookie)
{
	DAT_EVENT event;
	DAT_RETURN ret;

	while ((ret = dat_evd_dequeue(evd, &event)) != DAT_SUCCESS)
		assert_int_equal(ret, DAT_QUEUE_EMPTY);
	assert_true(event.event_data.dto_completion_event_data.user_cookie.as_64 == cookie);
	return event.event_data.dto_completion_event_data.status;
}

/* Did a thread of the consumer place it? A thread of the library may be faster. */
static bool is_placed_by_consumer(struct fixture *fixture, void (*vanish)(void), DAT_VLEN len)
{
	struct dt_pair *pair = &fixture->pair;
	DAT_DTO_COMPLETION_STATUS status;

	conf_send(pair, dt_seg(&fixture->local, 0, 8), dt_seg(&fixture->local, 64, 8));
	gone.faults = 0;
	dt_ok(conf_post_recv(pair, dt_seg(&fixture->target, 0, len), 3));
	vanish();
	dt_ok(conf_post_send(pair, dt_seg(&fixture->local, 0, len), 4));
	status = poll_for(pair->b.recv, 3);
	assert_int_equal(gone.foreign, 0);
	if (status == DAT_DTO_SUCCESS) {
		assert_int_equal(poll_for(pair->a.request, 4), DAT_DTO_SUCCESS);
		assert_int_equal(gone.faults, is_soft());
		if (is_soft())
			dt_check_bytes(gone.memory, len, FILLED);
		return true;
	}
	assert_int_equal(gone.faults, 0);
	assert_int_equal(status, DAT_DTO_ERR_LOCAL_PROTECTION);
	conf_expect_broken(pair);
	conf_relink(pair);
	return false;
}

/*
 * The consumer polls: its own thread places the message, at last. Over TCP the service thread
 * offers it the connection less often after each time that it did not take it.
 */
static void check_receive(struct fixture *fixture, void (*vanish)(void), DAT_VLEN len)
{
	const uint64_t give_up = dt_now_us() + DT_WAIT_US;

	handle_faults();
	for (int attempt = 0; attempt < 100 || (!DT_TSAN && dt_now_us() < give_up); attempt++)
		if (is_placed_by_consumer(fixture, vanish, len) || !is_soft())
			return;
	if (DT_TSAN)
		skip(); /* too few polls in a millisecond: the service thread keeps the work */
	fail_msg("no message was placed by the thread that polls");
}

/* LMR-USE-14 */
static void evd_dequeue__receive_unmapped_meanwhile__faults_there(void **state)
{
	for (DAT_VLEN len = 1; len <= PAGE; len = len * 7 + 1)
		check_receive(*state, unmap, len);
}

/* LMR-USE-14 */
static void evd_dequeue__receive_truncated_meanwhile__faults_there(void **state)
{
	check_receive(*state, truncate_file, 8);
	check_receive(*state, truncate_file, PAGE);
}

/* Registers read-only memory for writing. Returns false if that is refused at once. */
static bool is_registered_read_only(struct fixture *fixture)
{
	const DAT_REGION_DESCRIPTION region = {.for_va = gone.memory};
	const struct dt_ia *ia = &fixture->pair.ia;
	struct dt_buf *target = &fixture->target;
	DAT_RETURN ret;

	dt_ok(dat_lmr_free(target->lmr));
	target->lmr = NULL;
	ret = dat_lmr_create(ia->ia, DAT_MEM_TYPE_VIRTUAL, region, PAGES * PAGE, ia->pz,
			     DAT_MEM_PRIV_ALL_FLAG, &target->lmr, &target->lkey, &target->rkey,
			     NULL, NULL);
	if (ret == DAT_SUCCESS)
		return true;
	dt_fails_with(ret, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3);
	return false;
}

/* Each Write fails, unless a thread of this process placed it and faulted. */
static void check_read_only(struct fixture *fixture)
{
	struct dt_pair *pair = &fixture->pair;

	if (!is_registered_read_only(fixture))
		return;
	handle_faults();
	for (DAT_VLEN len = 1; len <= PAGE; len *= 16) {
		dt_ok(conf_post_read(pair, dt_seg(&fixture->local, 0, len),
				     dt_rseg(&fixture->target, 0, len), 1));
		dt_expect_dto(pair->a.request, pair->a.ep, 1, DAT_DTO_SUCCESS, len);
		dt_ok(conf_post_write(pair, dt_seg(&fixture->local, 0, len),
				      dt_rseg(&fixture->target, 0, len), 2));
		if (is_ring()) {
			expect_end(pair, pair->a.request, 2);
			continue;
		}
		dt_expect_dto(pair->a.request, pair->a.ep, 2, DAT_DTO_ERR_REMOTE_ACCESS,
			      DT_ANY_LEN);
		conf_expect_broken(pair);
		dt_check_bytes(gone.memory, PAGES * PAGE, 0);
		conf_relink(pair);
	}
	if (!is_ring())
		assert_int_equal(gone.faults, 0);
	assert_int_equal(gone.foreign, 0);
}

/* LMR-CREATE-23 LMR-USE-14 */
static void post_rdma_write__target_read_only__error_status(void **state)
{
	assert_int_equal(mprotect(gone.memory, PAGES * PAGE, PROT_READ), 0);
	check_read_only(*state);
}

/* LMR-CREATE-23: Memory of a file that is writable, through a read-only mapping. */
static void post_rdma_write__file_mapped_read_only__error_status(void **state)
{
	const int fd = memfd_create("gone", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, PAGES * PAGE), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_ptr_equal(mmap(gone.memory, PAGES * PAGE, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0),
			 gone.memory);
	check_read_only(*state);
	close(fd);
}

/* No thread is inside a call when the message arrives: a thread of the library places it. */
static void check_in_library_thread(struct fixture *fixture, void (*vanish)(void), DAT_VLEN len)
{
	struct dt_pair *pair = &fixture->pair;
	struct pollfd poll_fd = {.events = POLLIN};
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	handle_faults();
	dt_ok(dat_cno_create(pair->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(pair->b.recv, cno));
	dt_ok(dat_opendat_cno_fd(cno, &poll_fd.fd));
	dt_ok(conf_post_recv(pair, dt_seg(&fixture->target, 0, len), 3));
	vanish();
	dt_ok(conf_post_send(pair, dt_seg(&fixture->local, 0, len), 4));
	assert_int_equal(poll(&poll_fd, 1, (int)(DT_WAIT_US / 1000)), 1);
	dt_ok(dat_evd_dequeue(pair->b.recv, &event));
	if (is_soft())
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(gone.faults, 0);
	dt_ok(dat_evd_modify_cno(pair->b.recv, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
	if (event.event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS) {
		dt_event(pair->a.request);
		return;
	}
	conf_expect_broken(pair);
	conf_relink(pair);
}

/* LMR-USE-14 GEN-36 */
static void receive__unmapped_and_nobody_polls__local_protection(void **state)
{
	check_in_library_thread(*state, unmap, 8);
	check_in_library_thread(*state, unmap, PAGE);
	check_in_library_thread(*state, unmap, LARGE);
}

typedef DAT_RETURN post_rdma(struct fixture *fixture, DAT_VLEN len);

static DAT_RETURN write_gone(struct fixture *fixture, DAT_VLEN len)
{
	return conf_post_write(&fixture->pair, dt_seg(&fixture->local, 0, len),
			       dt_rseg(&fixture->target, 0, len), 5);
}

static DAT_RETURN read_gone(struct fixture *fixture, DAT_VLEN len)
{
	return conf_post_read(&fixture->pair, dt_seg(&fixture->local, 0, len),
			      dt_rseg(&fixture->target, 0, len), 5);
}

/*
 * No thread is inside a call when the request arrives: where the target moves the bytes, a thread
 * of the library does so.
 */
static void check_rdma_in_library_thread(struct fixture *fixture, post_rdma *post, DAT_VLEN len)
{
	struct dt_pair *pair = &fixture->pair;
	struct pollfd poll_fd = {.events = POLLIN};
	DAT_DTO_COMPLETION_STATUS status;
	DAT_CNO_HANDLE cno;
	DAT_EVENT event;

	dt_ok(dat_cno_create(pair->ia.ia, DAT_OS_WAIT_PROXY_AGENT_NULL, &cno));
	dt_ok(dat_evd_modify_cno(pair->a.request, cno));
	dt_ok(dat_opendat_cno_fd(cno, &poll_fd.fd));
	unmap();
	dt_ok(post(fixture, len));
	assert_int_equal(poll(&poll_fd, 1, (int)(DT_WAIT_US / 1000)), 1);
	dt_ok(dat_evd_dequeue(pair->a.request, &event));
	status = event.event_data.dto_completion_event_data.status;
	if (is_soft()) /* TERM-23: iWARP has no better word for it */
		assert_int_equal(status, dt_is_iwarp() ? DAT_DTO_ERR_REMOTE_RESPONDER
						       : DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(gone.faults, 0);
	dt_ok(dat_evd_modify_cno(pair->a.request, DAT_HANDLE_NULL));
	dt_ok(dat_cno_free(cno));
	if (status == DAT_DTO_SUCCESS)
		return;
	conf_expect_broken(pair);
	conf_relink(pair);
}

/* LMR-USE-14 GEN-36 TERM-23 */
static void post_rdma__unmapped_and_nobody_polls__refused(void **state)
{
	handle_faults();
	for (DAT_VLEN len = 8; len <= PAGE; len *= 512) {
		check_rdma_in_library_thread(*state, write_gone, len);
		check_rdma_in_library_thread(*state, read_gone, len);
	}
}

static void protect(void)
{
	assert_int_equal(mprotect(gone.memory, PAGES * PAGE, PROT_READ), 0);
}

/* LMR-CREATE-23 LMR-USE-14 */
static void receive__read_only__local_protection_or_faults_there(void **state)
{
	struct fixture *fixture = *state;

	protect();
	if (!is_registered_read_only(fixture))
		return;
	check_in_library_thread(fixture, protect, 8);
	check_in_library_thread(fixture, protect, PAGE);
	check_in_library_thread(fixture, protect, LARGE);
	check_receive(fixture, protect, 8);
	check_receive(fixture, protect, PAGE);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(post_rdma__target_unmapped_meanwhile__ends_without_harm),
		T(post_rdma__target_truncated_meanwhile__ends_without_harm),
		T(evd_dequeue__receive_unmapped_meanwhile__faults_there),
		T(evd_dequeue__receive_truncated_meanwhile__faults_there),
		T(receive__unmapped_and_nobody_polls__local_protection),
		T(post_rdma__unmapped_and_nobody_polls__refused),
		T(post_rdma_write__target_read_only__error_status),
		T(post_rdma_write__file_mapped_read_only__error_status),
		T(receive__read_only__local_protection_or_faults_there),
	};

	return cmocka_run_group_tests_name("lmr gone", tests, NULL, NULL);
}
