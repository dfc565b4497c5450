// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider, linked into the test, on a system whose calls fail one at a time: opening an
 * adapter, listening, connecting, accepting, moving bytes. Each fault is either told to the caller,
 * who can try again, or to the endpoints as the end of the attempt, or it costs nothing but time.
 * In no case does a descriptor or an allocation stay behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "core/base/calls.h"
#include "core/base/handle.h"
#include "core/base/instance.h"
#include "faults.h"
#include "soft/shm/engine/engine.h"
#include "soft/soft.h"

#define WAIT_US 20000000u
#define NTH_MOST 200 /* calls of one kind that one deed is expected to make */
#define LENGTH 65536u

/* --- libdat's part --- */

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);

/* --- what a deed starts from --- */

struct side {
	DAT_EP_HANDLE ep;
	bool is_established;
	bool has_failed;
};

static struct stage {
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async;
	DAT_PZ_HANDLE pz;
	DAT_EVD_HANDLE evd; /* of everything */
	DAT_CONN_QUAL qual; /* of the service point */
	DAT_PSP_HANDLE psp;
	DAT_CR_HANDLE cr;
	struct side a, b;
	unsigned char *memory; /* in a sealed file: first half the source, second half the target */
	int memory_fd;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	uint32_t seed;
} stage;

#define ok(call) assert_int_equal((call), DAT_SUCCESS)

static const char *adapter = "faulty";

static void stage_open(void)
{
	memset(&stage, 0, sizeof(stage));
	ok(core_ia_open_safe((DAT_NAME_PTR)(uintptr_t)adapter, 8, &stage.async, &stage.ia));
	ok(core_pz_create(stage.ia, &stage.pz));
	ok(core_evd_create(stage.ia, 64, DAT_HANDLE_NULL, DAT_EVD_DEFAULT_FLAG, &stage.evd));
}

static void stage_endpoints(void)
{
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.a.ep));
	ok(core_ep_create(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, NULL, &stage.b.ep));
}

static void stage_listen(void)
{
	stage_open();
	stage_endpoints();
	ok(core_psp_create_any(stage.ia, &stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG,
			       &stage.psp));
}

static DAT_RETURN connect_a_to(DAT_IA_ADDRESS_PTR address)
{
	return core_ep_connect(stage.a.ep, address, stage.qual, WAIT_US, 0, NULL,
			       DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

static DAT_RETURN connect_a(void)
{
	DAT_IA_ATTR attr;

	ok(core_ia_query(stage.ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, &attr, 0, NULL));
	return connect_a_to(attr.ia_address_ptr);
}

static DAT_EVENT next_event(void)
{
	DAT_EVENT event;
	DAT_COUNT more;

	ok(core_evd_wait(stage.evd, WAIT_US, 1, &event, &more));
	return event;
}

static void stage_request(void)
{
	DAT_EVENT event;

	stage_listen();
	ok(connect_a());
	event = next_event();
	assert_int_equal(event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	stage.cr = event.event_data.cr_arrival_event_data.cr_handle;
}

static DAT_RETURN accept_b(void)
{
	return core_cr_accept(stage.cr, stage.b.ep, 0, NULL);
}

static void take_event(const DAT_EVENT *event)
{
	struct side *side;

	if (event->event_number == DAT_CONNECTION_REQUEST_EVENT) {
		stage.cr = event->event_data.cr_arrival_event_data.cr_handle;
		ok(accept_b());
		return;
	}
	side = event->event_data.connect_event_data.ep_handle == stage.a.ep ? &stage.a : &stage.b;
	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		side->is_established = true;
	else
		side->has_failed = true;
}

/* The attempt comes to its end, whatever it is. True: both are connected. */
static bool attempt_ends(void)
{
	while (!stage.a.is_established && !stage.a.has_failed) {
		DAT_EVENT event = next_event();

		take_event(&event);
	}
	while (stage.a.is_established && !stage.a.has_failed && !stage.b.is_established) {
		DAT_EVENT event = next_event();

		take_event(&event);
	}
	return !stage.a.has_failed && !stage.b.has_failed;
}

static void stage_close(void)
{
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	if (!stage.memory)
		return;
	munmap(stage.memory, 2 * LENGTH);
	close(stage.memory_fd);
}

/* --- memory and data --- */

static void stage_memory(void)
{
	DAT_REGION_DESCRIPTION region;
	DAT_LMR_HANDLE lmr;
	int fd = memfd_create("faults", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 2 * LENGTH), 0);
	stage.memory = mmap(NULL, 2 * LENGTH, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(stage.memory, MAP_FAILED);
	region.for_va = stage.memory;
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * LENGTH, stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &stage.lkey, &stage.rkey, NULL, NULL));
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	stage.memory_fd = fd; /* by which a peer can be given the memory */
}

static void stage_connected(void)
{
	stage_request();
	ok(accept_b());
	assert_true(attempt_ends());
	stage_memory();
}

static DAT_LMR_TRIPLET half(unsigned which)
{
	return (DAT_LMR_TRIPLET){.lmr_context = stage.lkey,
				 .virtual_address = (uintptr_t)stage.memory + which * LENGTH,
				 .segment_length = LENGTH};
}

static void fill_source(void)
{
	stage.seed++;
	for (uint32_t i = 0; i < LENGTH; i++)
		stage.memory[i] = (unsigned char)(i * 7 + stage.seed);
}

static void check_target(void)
{
	assert_memory_equal(stage.memory, stage.memory + LENGTH, LENGTH);
}

static void expect_completions(int count)
{
	while (count--) {
		DAT_EVENT event = next_event();

		assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
		assert_int_equal(event.event_data.dto_completion_event_data.status,
				 DAT_DTO_SUCCESS);
	}
}

static void rdma_once(bool is_write)
{
	DAT_RMR_TRIPLET remote = {.rmr_context = stage.rkey,
				  .target_address =
					  (uintptr_t)stage.memory + (is_write ? LENGTH : 0),
				  .segment_length = LENGTH};
	DAT_LMR_TRIPLET local = half(is_write ? 0 : 1);
	DAT_DTO_COOKIE cookie = {.as_64 = 1};

	fill_source();
	if (is_write)
		ok(core_ep_post_rdma_write(stage.a.ep, 1, &local, cookie, &remote, 0));
	else
		ok(core_ep_post_rdma_read(stage.a.ep, 1, &local, cookie, &remote, 0));
	expect_completions(1);
	check_target();
}

static void send_once(void)
{
	DAT_LMR_TRIPLET from = half(0), to = half(1);
	DAT_DTO_COOKIE cookie = {.as_64 = 2};

	fill_source();
	ok(core_ep_post_recv(stage.b.ep, 1, &to, cookie, 0));
	ok(core_ep_post_send(stage.a.ep, 1, &from, cookie, 0));
	expect_completions(2);
	check_target();
}

/* --- nothing stays behind --- */

static int open_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

struct scene {
	void (*prepare)(void);
	DAT_RETURN (*deed)(void);
	void (*go_on)(bool is_done); /* after the deed, without faults: what must still work */
	enum fault_thread thread;
};

struct fault {
	const char *call;
	int error;
};

/* Plays the scene with the nth such call failing. False: there were not so many. */
static bool play(const struct scene *scene, const struct fault *fault, int nth)
{
	int descriptors = open_descriptors();
	int live = fault_live();
	bool has_failed;
	DAT_RETURN ret;

	scene->prepare();
	fault_arm(fault->call, nth, fault->error, scene->thread);
	ret = scene->deed();
	if (scene->thread == FAULT_OTHERS)
		scene->go_on(ret == DAT_SUCCESS);
	has_failed = fault_disarm();
	if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INSUFFICIENT_RESOURCES)
		fail_msg("%s number %d failed: 0x%x", fault->call, nth, ret);
	if (ret != DAT_SUCCESS)
		assert_true(has_failed);
	if (scene->thread == FAULT_CALLER)
		scene->go_on(ret == DAT_SUCCESS);
	stage_close();
	if (fault_live() != live || open_descriptors() != descriptors)
		fail_msg("%s number %d: %d allocations and %d descriptors were left", fault->call,
			 nth, fault_live() - live, open_descriptors() - descriptors);
	return has_failed;
}

static void play_all(const struct scene *scene, const struct fault *faults, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int nth = 1;

		while (play(scene, &faults[i], nth))
			assert_true(++nth < NTH_MOST);
	}
}

/* The same, for calls that the service thread makes when it likes. */
static void play_some(const struct scene *scene, const struct fault *faults, size_t count, int most)
{
	for (size_t i = 0; i < count; i++)
		for (int nth = 1; nth <= most; nth++)
			play(scene, &faults[i], nth);
}

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct fault create_faults[] = {
	{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},	 {"calloc", ENOMEM},
	{"realloc", ENOMEM},	     {"socket", EMFILE},	 {"bind", ENOMEM},
	{"listen", ENOBUFS},	     {"getsockname", ENOBUFS},	 {"memfd_create", EMFILE},
	{"memfd_create", ENFILE},    {"ftruncate64", ENOSPC},	 {"mmap64", ENOMEM},
	{"madvise", EAGAIN},	     {"epoll_create1", EMFILE},	 {"epoll_ctl", ENOSPC},
	{"eventfd", EMFILE},	     {"pthread_create", EAGAIN},
};

/* --- scenes --- */

static void nothing(void)
{
	memset(&stage, 0, sizeof(stage));
}

static DAT_RETURN open_adapter(void)
{
	return core_ia_open_safe((DAT_NAME_PTR) "faulty", 8, &stage.async, &stage.ia);
}

static void opens_later(bool is_done)
{
	if (is_done)
		return;
	assert_ptr_equal(stage.ia, DAT_HANDLE_NULL);
	ok(open_adapter());
}

/* IA-OPEN-33 IA-OPEN-34 */
static void ia_open__a_system_call_fails__nothing_left(void **state)
{
	static const struct scene scene = {nothing, open_adapter, opens_later, FAULT_CALLER};

	(void)state;
	play_all(&scene, create_faults, COUNT(create_faults));
}

static DAT_RETURN listen_any(void)
{
	return core_psp_create_any(stage.ia, &stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG,
				   &stage.psp);
}

/* The EVD is not used by a point that was not made; a connection can be had after it. */
static void connects_later(bool is_done)
{
	if (!is_done)
		ok(listen_any());
	stage_endpoints();
	ok(connect_a());
	assert_true(attempt_ends());
}

/* PSP-CRANY-13 GEN-20 */
static void psp_create_any__a_system_call_fails__nothing_left(void **state)
{
	static const struct scene scene = {stage_open, listen_any, connects_later, FAULT_CALLER};

	(void)state;
	play_all(&scene, create_faults, COUNT(create_faults));
}

static void knows_a_qualifier(void)
{
	stage_listen();
	ok(core_psp_free(stage.psp));
	stage.psp = DAT_HANDLE_NULL;
}

static DAT_RETURN listen_there(void)
{
	return core_psp_create(stage.ia, stage.qual, stage.evd, DAT_PSP_CONSUMER_FLAG, &stage.psp);
}

static void connects_there_later(bool is_done)
{
	if (!is_done)
		ok(listen_there()); /* the qualifier is free */
	ok(connect_a());
	assert_true(attempt_ends());
}

/* PSP-CREATE-21 GEN-20 */
static void psp_create__a_system_call_fails__nothing_left(void **state)
{
	static const struct scene scene = {knows_a_qualifier, listen_there, connects_there_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, create_faults, COUNT(create_faults));
}

static void attempt_works_later(bool is_done)
{
	DAT_EVENT event;
	DAT_EP_STATE state;

	if (is_done) {
		(void)attempt_ends(); /* told by the call or by the event: not by both, nor never */
		return;
	}
	ok(core_ep_get_status(stage.a.ep, &state, NULL, NULL));
	assert_int_equal(state, DAT_EP_STATE_UNCONNECTED);
	assert_int_equal(core_evd_dequeue(stage.evd, &event), DAT_QUEUE_EMPTY);
	ok(connect_a());
	assert_true(attempt_ends());
}

static const struct fault set_up_faults[] = {
	{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},    {"calloc", ENOMEM},
	{"socket", EMFILE},	     {"bind", ENOMEM},	    {"mmap64", ENOMEM},
	{"madvise", EAGAIN},	     {"connect", EAGAIN},   {"connect", ENOMEM},
	{"getsockopt", EINVAL},	     {"sendmsg", EINTR},    {"sendmsg", ETOOMANYREFS},
	{"sendmsg", EPIPE},	     {"epoll_ctl", ENOSPC}, {"memfd_create", EMFILE},
	{"ftruncate64", ENOSPC},
};

/* EP-CONNECT-42 EP-CONNECT-43 EP-CONNECT-22 */
static void ep_connect__a_system_call_fails__told_once(void **state)
{
	static const struct scene scene = {stage_listen, connect_a, attempt_works_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, set_up_faults, COUNT(set_up_faults));
}

/* One connection between the two has ended: what it has left is kept for the next. */
static void stage_kept(void)
{
	stage_connected();
	ok(core_ep_disconnect(stage.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (int sides = 0; sides < 2; sides++)
		assert_int_equal(next_event().event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	ok(core_ep_reset(stage.a.ep));
	ok(core_ep_reset(stage.b.ep));
	stage.a.is_established = false;
	stage.b.is_established = false;
}

static void ep_connect_again__a_system_call_fails__told_once(void **state)
{
	static const struct scene scene = {stage_kept, connect_a, attempt_works_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, set_up_faults, COUNT(set_up_faults));
}

/* EP-CONNECT-24 EP-CONNECT-42: the system is asked where an address is, unless it is our own */
static void ep_connect__own_address__system_is_not_asked(void **state)
{
	struct sockaddr_in other = {.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK + 1)};

	(void)state;
	stage_listen();
	fault_arm("bind", 1, ENOMEM, FAULT_CALLER);
	assert_int_equal(DAT_GET_TYPE(connect_a_to((DAT_IA_ADDRESS_PTR)&other)),
			 DAT_INSUFFICIENT_RESOURCES);
	assert_true(fault_disarm());
	fault_arm("bind", 1, ENOMEM, FAULT_CALLER);
	ok(connect_a());
	assert_false(fault_disarm());
	assert_true(attempt_ends());
	stage_close();
}

static void accept_works_later(bool is_done)
{
	DAT_EP_STATE state;

	if (is_done) {
		(void)attempt_ends();
		return;
	}
	ok(core_ep_get_status(stage.b.ep, &state, NULL, NULL));
	assert_int_equal(state, DAT_EP_STATE_UNCONNECTED);
	ok(accept_b());
	assert_true(attempt_ends());
}

/* CR-ACCEPT-28 */
static void cr_accept__a_system_call_fails__told_once(void **state)
{
	static const struct scene scene = {stage_request, accept_b, accept_works_later,
					   FAULT_CALLER};

	(void)state;
	play_all(&scene, set_up_faults, COUNT(set_up_faults));
}

static void attempt_ends_somehow(bool is_done)
{
	assert_true(is_done);
	(void)attempt_ends();
}

/* EP-CONNECT-22 CONN-EVT-07: the service thread meets the fault: the attempt ends, or succeeds. */
static void attempt__a_system_call_of_the_service_fails__ends(void **state)
{
	static const struct fault faults[] = {
		{"core_slab_alloc", ENOMEM}, {"malloc", ENOMEM},	  {"calloc", ENOMEM},
		{"realloc", ENOMEM},	     {"accept4", EMFILE},	  {"mmap64", ENOMEM},
		{"madvise", EAGAIN},	     {"getsockopt", EINVAL},	  {"sendmsg", EPIPE},
		{"epoll_ctl", ENOSPC},	     {"process_vm_readv", EPERM},
	};
	static const struct scene scene = {stage_listen, connect_a, attempt_ends_somehow,
					   FAULT_OTHERS};

	(void)state;
	play_some(&scene, faults, COUNT(faults), 4);
}

static void attempt_again__a_system_call_of_the_service_fails__ends(void **state)
{
	static const struct fault faults[] = {
		{"malloc", ENOMEM}, {"calloc", ENOMEM},	   {"recvmsg", ECONNREFUSED},
		{"sendmsg", EPIPE}, {"epoll_ctl", ENOSPC}, {"socket", EMFILE},
	};
	static const struct scene scene = {stage_kept, connect_a, attempt_ends_somehow,
					   FAULT_OTHERS};

	(void)state;
	play_some(&scene, faults, COUNT(faults), 4);
}

/* --- bytes --- */

static DAT_RETURN move_bytes(void)
{
	for (int i = 0; i < 4; i++) { /* the region is mapped after some uses */
		rdma_once(true);
		rdma_once(false);
	}
	return DAT_SUCCESS;
}

static void bytes_move_later(bool is_done)
{
	assert_true(is_done);
	move_bytes();
}

static const struct fault copy_faults[] = {
	{"process_vm_readv", EPERM},   {"process_vm_readv", ENOSYS}, {"process_vm_writev", EPERM},
	{"process_vm_writev", ENOSYS}, {"mmap64", ENOMEM},	     {"mmap64", EACCES},
	{"madvise", EAGAIN},
};

/* EP-RDMAW-01 EP-RDMAR-01: whatever way of copying is refused, another one takes its place. */
static void rdma__a_way_of_copying_fails__bytes_arrive(void **state)
{
	static const struct scene by_caller = {stage_connected, move_bytes, bytes_move_later,
					       FAULT_CALLER};
	static const struct scene by_service = {stage_connected, move_bytes, bytes_move_later,
						FAULT_OTHERS};

	(void)state;
	play_some(&by_caller, copy_faults, COUNT(copy_faults), 3);
	play_some(&by_service, copy_faults, COUNT(copy_faults), 3);
}

/* The kernel lets the receiver read no more (prctl, seccomp): told to both sides, once each. */
static void send__fetching_is_refused_after_the_set_up__both_break(void **state)
{
	DAT_LMR_TRIPLET from, to;
	DAT_DTO_COOKIE cookie = {.as_64 = 3};
	int done = 0, failed = 0;

	(void)state;
	stage_connected();
	from = half(0);
	to = half(1);
	fault_arm("process_vm_readv", 1, EPERM, FAULT_ANY);
	ok(core_ep_post_recv(stage.b.ep, 1, &to, cookie, 0));
	ok(core_ep_post_send(stage.a.ep, 1, &from, cookie, 0));
	while (done + failed < 4) {
		DAT_EVENT event = next_event();

		if (event.event_number == DAT_DTO_COMPLETION_EVENT) {
			assert_int_not_equal(event.event_data.dto_completion_event_data.status,
					     DAT_DTO_SUCCESS);
			done++;
		} else {
			assert_int_equal(event.event_number, DAT_CONNECTION_EVENT_BROKEN);
			failed++;
		}
	}
	assert_int_equal(done, 2);
	assert_true(fault_disarm());
	stage_close();
}

/*
 * The kernel looks for a packet, then for the end of the socket: a peer that says goodbye and
 * closes between the two is not dead.
 */
static void disconnect__socket_seems_to_end_before_the_last_packet__disconnected(void **state)
{
	(void)state;
	stage_connected();
	fault_arm("recvmsg", 1, 0, FAULT_ANY);
	ok(core_ep_disconnect(stage.a.ep, DAT_CLOSE_ABRUPT_FLAG));
	for (int sides = 0; sides < 2; sides++)
		assert_int_equal(next_event().event_number, DAT_CONNECTION_EVENT_DISCONNECTED);
	assert_true(fault_disarm());
	stage_close();
}

/* --- without faults: what only the inside shows --- */

static void count_paths(uint64_t *counters_out)
{
	soft_counters(((struct core_handle *)stage.ia)->object, counters_out);
}

static bool kernel_copies(void)
{
	char from[2] = "a", to[2] = "b";
	struct iovec local = {to, 2}, remote = {from, 2};

	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 2;
}

/* The setting decides which way the bytes take, and the others are not taken. */
static void rdma__copy_path_set__takes_that_path(void **state)
{
	static const struct {
		const char *setting;
		enum shm_counter taken;
		enum shm_counter not_taken[2];
	} paths[] = {
		/* until it is mapped, another way is taken */
		{"map", SHM_COUNT_MAP, {SHM_COUNT_END, SHM_COUNT_END}},
		{"cma", SHM_COUNT_CMA, {SHM_COUNT_MAP, SHM_COUNT_RING}},
		{"ring", SHM_COUNT_RING, {SHM_COUNT_MAP, SHM_COUNT_CMA}},
	};
	uint64_t counters[SHM_COUNT_END + 1] = {0}, end;

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		if (paths[i].taken == SHM_COUNT_CMA && !kernel_copies())
			continue;
		assert_int_equal(setenv("DAT_COPY", paths[i].setting, 1), 0);
		stage_connected();
		end = shm_now_ns() + WAIT_US * UINT64_C(1000);
		do { /* memory is mapped some time after the first use */
			move_bytes();
			count_paths(counters);
		} while (!counters[paths[i].taken] && shm_now_ns() < end);
		stage_close();
		assert_true(counters[paths[i].taken] > 0);
		assert_int_equal(counters[paths[i].not_taken[0]], 0);
		assert_int_equal(counters[paths[i].not_taken[1]], 0);
	}
	assert_int_equal(unsetenv("DAT_COPY"), 0);
}

/* An adapter with an IPv6 address: the same, and the request tells that address. */
static void connection__ipv6_address__bytes_move(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "six", .is_thread_safe = DAT_TRUE};
	DAT_CR_PARAM param;

	(void)state;
	dat_provider_init(&info, "::1");
	if (core_ia_open_safe((DAT_NAME_PTR) "six", 8, &(DAT_EVD_HANDLE){DAT_HANDLE_NULL},
			      &stage.ia) != DAT_SUCCESS) {
		print_message("no IPv6 here\n");
		skip();
	}
	ok(core_ia_close(stage.ia, DAT_CLOSE_ABRUPT_FLAG));
	adapter = "six";
	stage_request();
	ok(core_cr_query(stage.cr, DAT_CR_FIELD_ALL, &param));
	assert_int_equal(param.remote_ia_address_ptr->sa_family, AF_INET6);
	assert_true(IN6_IS_ADDR_LOOPBACK(
		&((struct sockaddr_in6 *)param.remote_ia_address_ptr)->sin6_addr));
	ok(accept_b());
	assert_true(attempt_ends());
	stage_memory();
	move_bytes();
	send_once();
	stage_close();
	adapter = "faulty";
}

/* --- */

/* What is made once and stays: the arena, the bitmap of descriptors, the thread's own memory. */
static int warm_up(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "faulty",
				  .dapl_version_major = 1,
				  .dapl_version_minor = 2,
				  .is_thread_safe = DAT_TRUE};

	(void)state;
	dat_provider_init(&info, "127.0.0.1");
	stage_connected();
	move_bytes();
	send_once();
	stage_close();
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ia_open__a_system_call_fails__nothing_left),
		cmocka_unit_test(psp_create_any__a_system_call_fails__nothing_left),
		cmocka_unit_test(psp_create__a_system_call_fails__nothing_left),
		cmocka_unit_test(ep_connect__a_system_call_fails__told_once),
		cmocka_unit_test(ep_connect__own_address__system_is_not_asked),
		cmocka_unit_test(ep_connect_again__a_system_call_fails__told_once),
		cmocka_unit_test(cr_accept__a_system_call_fails__told_once),
		cmocka_unit_test(attempt__a_system_call_of_the_service_fails__ends),
		cmocka_unit_test(attempt_again__a_system_call_of_the_service_fails__ends),
		cmocka_unit_test(rdma__a_way_of_copying_fails__bytes_arrive),
		cmocka_unit_test(send__fetching_is_refused_after_the_set_up__both_break),
		cmocka_unit_test(
			disconnect__socket_seems_to_end_before_the_last_packet__disconnected),
		cmocka_unit_test(rdma__copy_path_set__takes_that_path),
		cmocka_unit_test(connection__ipv6_address__bytes_move),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
