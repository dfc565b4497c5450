// SPDX-License-Identifier: BSD-2-Clause
/*
 * The whole provider on a system whose calls fail: copies, and what shows only without faults.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/statfs.h>
#include <sys/uio.h>

#include "../../../lib/ability.h"
#include "faults_scene.h"
#include "faults_stage.h"
#include "core/base/clock.h"
#include "soft/gate.h"
#include "soft/soft.h"
#include "soft/shm/engine/engine.h"

/* The gate calls process_vm_writev itself, without the C library. */
bool __real_soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
			 unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, ssize_t *result);
bool __wrap_soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
			 unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, ssize_t *result);
bool __wrap_soft_gate_vm(soft_gate *gate, bool is_write, pid_t pid, const struct iovec *local,
			 unsigned long local_count, const struct iovec *remote,
			 unsigned long remote_count, ssize_t *result)
{
	if (fault_hits("soft_gate_vm")) {
		*result = -errno;
		return true;
	}
	return __real_soft_gate_vm(gate, is_write, pid, local, local_count, remote, remote_count,
				   result);
}

static void bytes_move_later(bool is_done)
{
	assert_true(is_done);
	move_bytes();
}

static void attempt_moves_bytes(bool is_done)
{
	assert_true(is_done);
	assert_true(attempt_ends());
	stage_memory();
	move_bytes();
}

static const struct fault copy_faults[] = {
	{"process_vm_readv", EPERM}, {"process_vm_readv", ENOSYS}, {"soft_gate_vm", EPERM},
	{"soft_gate_vm", ENOSYS},    {"mmap64", ENOMEM},	   {"mmap64", EACCES},
	{"madvise", EAGAIN},
};

/* EP-RDMAW-01 EP-RDMAR-01: if one copy path is refused, another one is used. */
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

int __real_fstatfs64(int fd, struct statfs *info);
int __wrap_fstatfs64(int fd, struct statfs *info);
int __wrap_fstatfs64(int fd, struct statfs *info)
{
	return fault_hits("fstatfs64") ? -1 : __real_fstatfs64(fd, info);
}

/* A key table that cannot be checked gives no direct access, to either side. */
static void connect__key_table_refused__bytes_arrive(void **state)
{
	static const struct fault faults[] = {{"fstatfs64", ENOMEM}};
	static const struct scene scene = {stage_request, accept_b, attempt_moves_bytes,
					   FAULT_OTHERS};

	(void)state;
	play_some(&scene, faults, COUNT(faults), 3);
}

/* DTO-123: the kernel does not let the reader copy any more. (Writes need no function of libc.) */
static void read__copying_is_refused_after_the_set_up__bytes_arrive(void **state)
{
	static const int errors[] = {EPERM, ENOSYS, ENOMEM, EAGAIN, ESRCH};

	(void)state;
	ABILITY_NEED_VM_CALLS();
	assert_int_equal(setenv("DAT_COPY", "cma", 1), 0);
	for (size_t i = 0; i < COUNT(errors); i++) {
		stage_connected();
		fault_arm("process_vm_readv", 1, errors[i], FAULT_ANY);
		rdma_once(false);
		assert_true(fault_disarm());
		move_bytes();
		send_once();
		stage_close();
	}
	assert_int_equal(unsetenv("DAT_COPY"), 0);
}

#define LONG (11 * 65536u) /* more than two pieces that the kernel copies */
#define MARGIN 4096u	   /* on either side of the target, in the same region; keeps its bytes */

/* The kernel refuses that copy of one request, whose rest goes another way. */
static void play_refusal(bool is_write, int nth)
{
	static unsigned char memory[2 * LONG + 3 * MARGIN];
	unsigned char *source = memory + MARGIN, *target = source + LONG + MARGIN;
	DAT_REGION_DESCRIPTION region = {.for_va = memory};
	DAT_DTO_COOKIE cookie = {.as_64 = 4};
	DAT_LMR_TRIPLET local = {.segment_length = LONG};
	DAT_RMR_TRIPLET remote = {.segment_length = LONG};
	DAT_LMR_HANDLE lmr;

	for (size_t i = 0; i < sizeof(memory); i++)
		memory[i] = (unsigned char)(i % 251);
	memset(target - MARGIN, 0xa5, LONG + 2 * MARGIN);
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, sizeof(memory), stage.pz,
			   DAT_MEM_PRIV_ALL_FLAG, &lmr, &local.lmr_context, &remote.rmr_context,
			   NULL, NULL));
	local.virtual_address = (uintptr_t)(is_write ? source : target);
	remote.target_address = (uintptr_t)(is_write ? target : source);
	fault_arm(is_write ? "soft_gate_vm" : "process_vm_readv", nth, EPERM, FAULT_ANY);
	if (is_write)
		ok(core_ep_post_rdma_write(stage.a.ep, 1, &local, cookie, &remote, 0));
	else
		ok(core_ep_post_rdma_read(stage.a.ep, 1, &local, cookie, &remote, 0));
	expect_completions(1);
	assert_true(fault_disarm());
	assert_memory_equal(target, source, LONG);
	for (size_t i = 1; i <= MARGIN; i++) {
		assert_int_equal(target[-(ptrdiff_t)i], 0xa5);
		assert_int_equal(target[LONG + i - 1], 0xa5);
	}
}

/* DTO-123: one request begins as a copy by the kernel, and ends through the ring */
static void rdma__refused_in_the_middle__bytes_at_their_places(void **state)
{
	(void)state;
	ABILITY_NEED_VM_CALLS();
	for (int nth = 1; nth <= 3; nth++) {
		for (int is_write = 0; is_write < 2; is_write++) {
			stage_connected();
			play_refusal(is_write, nth);
			stage_close();
		}
	}
}

/*
 * The kernel checks for a packet, then for the end of the socket: a peer that sends CLOSE and
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
	const struct core_ia *ia = ((struct core_handle *)stage.ia)->object;

	for (size_t i = 0; i < SHM_COUNT_END; i++)
		counters_out[i] = atomic_load(&soft_adapter_of(ia)->shm->counters[i]);
}

/* The setting decides which copy path the bytes take. */
static void rdma__copy_path_set__takes_that_path(void **state)
{
	static const struct {
		const char *setting;
		enum shm_counter taken;
		enum shm_counter not_taken[2];
	} paths[] = {
		/* until the memory is mapped, another path is used */
		{"map", SHM_COUNT_MAP, {SHM_COUNT_END, SHM_COUNT_END}},
		{"cma", SHM_COUNT_CMA, {SHM_COUNT_MAP, SHM_COUNT_RING}},
		{"ring", SHM_COUNT_RING, {SHM_COUNT_MAP, SHM_COUNT_CMA}},
	};
	uint64_t counters[SHM_COUNT_END + 1] = {0}, end;

	(void)state;
	for (size_t i = 0; i < COUNT(paths); i++) {
		if (paths[i].taken == SHM_COUNT_CMA && !ability_vm_calls())
			continue;
		assert_int_equal(setenv("DAT_COPY", paths[i].setting, 1), 0);
		stage_connected();
		end = core_now_ns() + WAIT_US * UINT64_C(1000);
		do { /* memory is mapped some time after the first use */
			move_bytes();
			count_paths(counters);
		} while (!counters[paths[i].taken] && core_now_ns() < end);
		stage_close();
		assert_true(counters[paths[i].taken] > 0);
		assert_int_equal(counters[paths[i].not_taken[0]], 0);
		assert_int_equal(counters[paths[i].not_taken[1]], 0);
	}
	assert_int_equal(unsetenv("DAT_COPY"), 0);
}

/* The same on an adapter with an IPv6 address, which the request contains. */
static void connection__ipv6_address__bytes_move(void **state)
{
	DAT_PROVIDER_INFO info = {.ia_name = "six", .is_thread_safe = DAT_TRUE};
	DAT_CR_PARAM param;

	(void)state;
	dat_provider_init(&info, "::1 transport=shm");
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rdma__a_way_of_copying_fails__bytes_arrive),
		cmocka_unit_test(connect__key_table_refused__bytes_arrive),
		cmocka_unit_test(read__copying_is_refused_after_the_set_up__bytes_arrive),
		cmocka_unit_test(rdma__refused_in_the_middle__bytes_at_their_places),
		cmocka_unit_test(
			disconnect__socket_seems_to_end_before_the_last_packet__disconnected),
		cmocka_unit_test(rdma__copy_path_set__takes_that_path),
		cmocka_unit_test(connection__ipv6_address__bytes_move),
	};

	return cmocka_run_group_tests(tests, warm_up, NULL);
}
