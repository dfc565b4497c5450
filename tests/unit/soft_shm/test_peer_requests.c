// SPDX-License-Identifier: BSD-2-Clause
/*
 * Our own requests on the slow path (transfer/tx.c), sleeping and waking, and the end.
 */
#include <string.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "slow.h"
#include "core/base/clock.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/connect/close.h"
#include "soft/shm/connect/ep.h"
#include "soft/shm/engine/engine.h"
#include "soft/shm/transfer/map.h"
#include "soft/shm/transfer/progress.h"
#include "soft/shm/wire.h"

/* --- our own requests --- */

/* DTO-108: the peer serves two at a time */
static void read__more_than_the_peer_serves__the_rest_waits(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	unsigned i;

	for (i = 0; i < 4; i++)
		assert_true(lab_post(lab, CORE_OP_RDMA_READ, 8 * i, 4, 5, 5));
	assert_int_equal(lab->conn->request_out.published, 2 * SHM_ENTRY_ALIGN);
	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->conn->request_out.published, 3 * SHM_ENTRY_ALIGN);
}

/* DTO-30 */
static void fenced_send__read_in_flight__waits_for_its_data(void **state)
{
	struct lab *lab = *state;
	struct shm_entry entry = {.type = SHM_ENTRY_DATA, .flags = SHM_FLAG_LAST, .payload = 4};
	uint32_t after_read;

	assert_true(lab_post(lab, CORE_OP_RDMA_READ, 0, 4, 5, 5));
	after_read = lab->conn->request_out.published;
	lab->next_flags = DAT_COMPLETION_BARRIER_FENCE_FLAG;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 4, 0, 0));
	assert_int_equal(lab->conn->request_out.published, after_read);
	assert_true(lab_peer_entry(&lab->peer_answers, &entry, "data"));
	lab_pass(lab);
	assert_int_not_equal(lab->conn->request_out.published, after_read);
	assert_memory_equal(lab->conn->segment->request[SHM_PASSIVE] + after_read + SHM_ENTRY_ALIGN,
			    "data", 4);
}

static void send__ring_full__goes_on_when_there_is_space(void **state)
{
	struct lab *lab = *state;
	unsigned i;

	for (i = 0; i < 8; i++)
		assert_true(lab_post(lab, CORE_OP_SEND, 0, 4096, 0, 0));
	assert_true(lab->conn->tx_next < 8);
	assert_false(shm_conn_has_work(lab->conn));
	while (lab->done < 8) {
		/* the peer takes all entries */
		atomic_store(&lab->peer->request_consumed, lab->conn->request_out.published);
		atomic_store(&lab->peer->done, lab->conn->sent);
		assert_true(shm_conn_has_work(lab->conn));
		lab_pass(lab);
	}
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_true(lab_is_open(lab));
}

static void write__by_the_kernel__checked_in_the_table_of_the_peer(void **state)
{
	struct lab *lab = *state;

	ABILITY_NEED_VM_CALLS();
	memset(lab->memory, 'w', 100);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(lab->done, 1);
	assert_int_equal(lab->done_status, DAT_DTO_SUCCESS);
	assert_int_equal(lab->peer_memory[99], 'w');
	assert_int_equal(lab->peer_memory[100], 0xa5);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory + LAB_MEMORY - 99));
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(lab->peer_memory[LAB_MEMORY - 1], 0xa5);
	assert_false(lab_is_open(lab));
	lab->end = BROKEN;
}

/* LMR-USE-14: the request names our own memory if that is what cannot be accessed. */
static void write__own_memory_gone__local_protection(void **state)
{
	struct lab *lab = *state;
	const size_t page = 4096;
	uint8_t *gone = (uint8_t *)(((uintptr_t)lab->memory + page - 1) & ~(page - 1)) + page;
	const size_t before = (size_t)(gone - lab->memory) - 10;

	ABILITY_NEED_VM_CALLS();
	assert_int_equal(mprotect(gone, page, PROT_NONE), 0);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, before, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(mprotect(gone, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_false(lab_is_open(lab));
	lab->end = BROKEN;
}

/* LMR-USE-14: the same for memory that can be read and not written. */
static void read__own_memory_read_only__local_protection(void **state)
{
	struct lab *lab = *state;
	const size_t page = 4096;
	uint8_t *gone = (uint8_t *)(((uintptr_t)lab->memory + page - 1) & ~(page - 1)) + page;
	const size_t before = (size_t)(gone - lab->memory) - 10;

	ABILITY_NEED_VM_CALLS();
	assert_int_equal(mprotect(gone, page, PROT_READ), 0);
	assert_true(lab_post(lab, CORE_OP_RDMA_READ, before, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(mprotect(gone, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_false(lab_is_open(lab));
	lab->end = BROKEN;
}

/* The memory of the peer cannot be accessed, although its table lists it. */
static void write__memory_of_the_peer_gone__remote_access(void **state)
{
	struct lab *lab = *state;
	const size_t page = 4096;
	uint8_t *gone = (uint8_t *)(((uintptr_t)lab->peer_memory + page - 1) & ~(page - 1));

	ABILITY_NEED_VM_CALLS();
	assert_int_equal(mprotect(gone, page, PROT_NONE), 0);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey, (uintptr_t)gone));
	assert_int_equal(mprotect(gone, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_false(lab_is_open(lab));
	lab->end = BROKEN;
}

/* Nothing is written to a peer that has revoked, whatever its table says. */
static void write__peer_has_revoked__touches_nothing(void **state)
{
	struct lab *lab = *state;

	atomic_store(&lab->peer->revoked, 1);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 100, lab->peer_rkey,
			     (uintptr_t)lab->peer_memory));
	assert_int_equal(lab->done, 0);
	assert_int_equal(lab->peer_memory[0], 0xa5);
	assert_int_equal(atomic_load(&lab->conn->mine->announce), 0);
}

static uint64_t counted(struct lab *lab, enum shm_counter counter)
{
	return shm_engine_count(&lab->engine, counter);
}

/* We ask once for the memory behind a key, and copy directly when it has arrived. */
static void write__memory_file_given__mapped_and_checked_by_key(void **state)
{
	struct lab *lab = *state;
	struct shm_wire_give give = {.address = 1u << 20, .length = 8192};
	union shm_wire wire;
	uint8_t bytes[4];
	uint32_t key;
	int fd = soft_fd_memfd("test", 8192);

	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(soft_keys_add(lab->peer_keys, give.address, give.length,
				       SOFT_RIGHT_REMOTE_WRITE, 9, &key),
			 0);
	/* through the ring until the answer arrives, and one question only */
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address));
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_MAP_ASK);
	assert_int_equal(wire.word.word, key);
	atomic_store(&lab->peer->done, 1);
	lab_pass(lab);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address));
	assert_int_equal(lab_peer_packet(lab, &wire), 0);
	atomic_store(&lab->peer->done, 2);
	lab_pass(lab);
	assert_int_equal(counted(lab, SHM_COUNT_RING), 2);

	give.key = key;
	shm_map_given(lab->conn, &give, fd);
	memcpy(lab->memory, "maps", 4);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address + 8188));
	assert_int_equal(lab->done, 3);
	assert_int_equal(counted(lab, SHM_COUNT_MAP), 1);
	assert_int_equal(pread(fd, bytes, 4, 8188), 4);
	assert_memory_equal(bytes, "maps", 4);
	/* the key decides, not the mapping */
	soft_keys_invalidate(lab->peer_keys, key);
	memcpy(lab->memory, "evil", 4);
	assert_true(lab_post(lab, CORE_OP_RDMA_WRITE, 0, 4, key, give.address + 8188));
	assert_int_equal(lab->done_status, DAT_DTO_ERR_REMOTE_ACCESS);
	assert_int_equal(pread(fd, bytes, 4, 8188), 4);
	assert_memory_equal(bytes, "maps", 4);
	soft_keys_release(lab->peer_keys, key);
	soft_fd_close(fd);
}

static int setup_map(void **state)
{
	*state = lab_open(CORE_COPY_MAP, false);
	(*(struct lab **)state)->conn->remote.maps = calloc(SHM_MAPS, sizeof(struct shm_map));
	return 0;
}

/* A message names its memory; once that is mapped here, the next message is fetched from it. */
static void message__from_mapped_memory__fetched_by_the_mapping(void **state)
{
	struct lab *lab = *state;
	struct shm_source source = {.key = lab->peer_rkey, .length = 2000};
	struct shm_entry entry = lab_send_entry(2000);
	struct shm_map *map;
	union shm_wire wire;
	uint8_t *other;
	int fd;

	lab->conn->remote.has_pull = true;
	lab->conn->remote.pid = 0; /* no kernel finds it */
	entry.key = lab->peer_rkey;
	assert_true(lab_post_receive(lab, 0, 2000));
	ask(lab, entry, lab->peer_memory);
	assert_int_equal(lab_peer_packet(lab, &wire), SHM_WIRE_MAP_ASK);
	assert_int_equal(wire.word.word, lab->peer_rkey);

	/* different bytes from those in peer_memory, to see from where they are copied */
	fd = memfd_create("lab", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, LAB_MEMORY), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	other = mmap(NULL, LAB_MEMORY, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	memset(other, 'm', LAB_MEMORY);
	wire.give = (struct shm_wire_give){.key = lab->peer_rkey,
					   .address = (uintptr_t)lab->peer_memory,
					   .length = LAB_MEMORY};
	shm_map_given(lab->conn, &wire.give, fd);
	map = shm_map_find(lab->conn, lab->peer_rkey);
	assert_non_null(map);
	assert_non_null(shm_map_at(map, source.address + (uintptr_t)lab->peer_memory, 1));

	source.address = (uintptr_t)lab->peer_memory + 5;
	assert_true(lab_post_receive(lab, 3000, 2000));
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = 2000},
	    &source);
	assert_int_equal(lab->receive_len, 2000);
	assert_int_equal(lab->memory[3000], 'm');
	assert_int_equal(lab->memory[4999], 'm');
	assert_int_equal(lab->memory[5000], 0xa5);
	munmap(other, LAB_MEMORY);
	close(fd);
}

/* LMR-USE-14: the sender is not to blame if the kernel cannot write into our Receive. */
static void message__receive_gone_when_it_is_fetched__local_protection_here(void **state)
{
	struct lab *lab = *state;
	const size_t page = 4096;
	uint8_t *gone = (uint8_t *)(((uintptr_t)lab->memory + page - 1) & ~(page - 1)) + page;
	struct shm_source source = {
		.key = lab->peer_rkey, .address = (uintptr_t)lab->peer_memory, .length = 3 * page};

	ABILITY_NEED_VM_CALLS();
	hold(lab);
	lab->conn->remote.has_pull = true;
	assert_true(lab_post_receive(lab, 0, 3 * page));
	assert_int_equal(mprotect(gone, page, PROT_READ), 0);
	ask(lab,
	    (struct shm_entry){.type = SHM_ENTRY_PULL,
			       .flags = SHM_FLAG_FIRST | SHM_FLAG_LAST,
			       .payload = sizeof(source),
			       .length = 3 * page},
	    &source);
	assert_int_equal(mprotect(gone, page, PROT_READ | PROT_WRITE), 0);
	assert_int_equal(lab->received, 1);
	assert_int_equal(lab->receive_status, DAT_DTO_ERR_LOCAL_PROTECTION);
	assert_int_equal(failed(lab), SHM_FAILED(SHM_FAILED_MESSAGE, DAT_DTO_ERR_REMOTE_RESPONDER));
	assert_int_equal(lab->end, BROKEN);
	shm_conn_put(lab->conn);
}

/* Our own longer Sends are not copied into the ring if the peer has mapped their memory. */
static void send__memory_given_to_the_peer__named_and_not_copied(void **state)
{
	struct lab *lab = *state;
	const struct shm_entry *entries = (const void *)lab->conn->segment->request[SHM_PASSIVE];

	lab->conn->remote.is_pulling = true;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[0].type, SHM_ENTRY_SEND);
	assert_int_equal(entries[0].key, lab->lmr->rkey);
	lab->conn->given[7] = lab->lmr->rkey;
	lab->engine.given_count = 1;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1023, 0, 0));
	assert_int_equal(entries[33].type, SHM_ENTRY_SEND);
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[66].type, SHM_ENTRY_PULL);
	lab->conn->given[7] = 0;
	lab->engine.given_count = 0;
	assert_true(lab_post(lab, CORE_OP_SEND, 0, 1024, 0, 0));
	assert_int_equal(entries[68].type, SHM_ENTRY_SEND);
}

/* --- ends --- */

/* DTO-120 EP-DISC-40: the end is reported when the peer's copy is over, or at the time-out */
static void disconnect__peer_in_the_middle_of_a_copy__reported_when_it_is_over(void **state)
{
	struct lab *lab = *state;

	hold(lab);
	atomic_store(&lab->peer->announce, lab->rkey);
	shm_ep_disconnect(&lab->ep, false);
	assert_int_equal(lab->end, 0);
	assert_int_equal(atomic_load(&lab->conn->mine->revoked), 1);
	atomic_store(&lab->peer->announce, 0);
	shm_conn_finish(lab->conn, &lab->ep);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_conn_put(lab->conn);
}

static void disconnect__peer_never_ends_its_copy__reported_at_the_time_out(void **state)
{
	struct lab *lab = *state;
	uint64_t start = core_now_ns();

	hold(lab);
	atomic_store(&lab->peer->announce, lab->rkey);
	shm_ep_disconnect(&lab->ep, false);
	while (lab->end == 0)
		shm_conn_finish(lab->conn, &lab->ep);
	assert_true(core_now_ns() - start >= 50u * 1000000u);
	assert_int_equal(lab->end, DAT_CONNECTION_EVENT_DISCONNECTED);
	shm_conn_put(lab->conn);
}

int main(void)
{
#define RING(name) cmocka_unit_test_setup_teardown(name, setup_ring, teardown)
#define CMA(name) cmocka_unit_test_setup_teardown(name, setup_cma, teardown)
	const struct CMUnitTest tests[] = {
		RING(read__more_than_the_peer_serves__the_rest_waits),
		RING(fenced_send__read_in_flight__waits_for_its_data),
		RING(send__ring_full__goes_on_when_there_is_space),
		CMA(write__by_the_kernel__checked_in_the_table_of_the_peer),
		CMA(write__own_memory_gone__local_protection),
		CMA(read__own_memory_read_only__local_protection),
		CMA(message__receive_gone_when_it_is_fetched__local_protection_here),
		CMA(write__memory_of_the_peer_gone__remote_access),
		CMA(write__peer_has_revoked__touches_nothing),
		cmocka_unit_test_setup_teardown(write__memory_file_given__mapped_and_checked_by_key,
						setup_map, teardown),
		cmocka_unit_test_setup_teardown(message__from_mapped_memory__fetched_by_the_mapping,
						setup_map, teardown),
		cmocka_unit_test_setup_teardown(
			send__memory_given_to_the_peer__named_and_not_copied, setup_map, teardown),
		RING(disconnect__peer_in_the_middle_of_a_copy__reported_when_it_is_over),
		RING(disconnect__peer_never_ends_its_copy__reported_at_the_time_out),
	};

	return cmocka_run_group_tests_name("shm peer", tests, NULL, NULL);
}
