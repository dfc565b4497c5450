// SPDX-License-Identifier: BSD-2-Clause
/*
 * A peer that serves requests late: RDMA Reads beyond the limit wait, and memory that becomes
 * mapped meanwhile must not let a request overtake an earlier one.
 */
#include <sys/mman.h>

#include "soft/shm/bytes/ring.h"
#include "soft/shm/bytes/wire.h"
#include "hostile.h"

/* Connects as a peer whose memory cannot be reached by system calls. */
static void far_connect(struct hostile *h, struct conn_fixture *f, uint32_t read_in)
{
	const struct shm_wire_side side = {.port = 1,
					   .token_address = (uintptr_t)token,
					   .token = "not the token",
					   .read_in = read_in,
					   .read_out = 4};

	hostile_ask_as(h, own_address(f), f->listener.qual, &side);
	hostile_accept(h, f, &f->a);
}

#define FAR_KEY 5u
#define FAR_LEN 64u
#define FAR_AT 0x5000000u /* an unmapped address of the peer */
#define FAR_READS 4u

/* The number of RDMA Reads in the ring, which has no other entries. */
static uint32_t reads_asked(const struct hostile *h)
{
	const struct shm_entry *entries = (const void *)h->segment->request[SHM_PASSIVE];
	uint32_t count = 0;

	while (__atomic_load_n(&entries[count].stamp, __ATOMIC_ACQUIRE) ==
	       SHM_STAMP(count * SHM_ENTRY_ALIGN))
		assert_int_equal(entries[count++].type, SHM_ENTRY_READ);
	return count;
}

/* Answers the RDMA Read with that number. */
static void answer_read(const struct hostile *h, uint32_t number)
{
	const uint32_t at = number * (SHM_ENTRY_ALIGN + FAR_LEN);
	struct shm_entry *entry = (void *)(h->segment->response[SHM_ACTIVE] + at);

	memset((uint8_t *)entry + SHM_ENTRY_ALIGN, (int)number, FAR_LEN);
	entry->type = SHM_ENTRY_DATA;
	entry->flags = SHM_FLAG_LAST;
	entry->payload = FAR_LEN;
	entry->length = FAR_LEN;
	__atomic_store_n(&entry->stamp, SHM_STAMP(at), __ATOMIC_RELEASE);
	hostile_word(h, SHM_WIRE_WAKE, 0);
}

static void post_far(struct conn_fixture *f, bool is_read, uint64_t target, uint64_t cookie)
{
	const DAT_RMR_TRIPLET remote = {
		.rmr_context = FAR_KEY, .target_address = target, .segment_length = FAR_LEN};
	DAT_LMR_TRIPLET local = dt_seg(&f->buf, cookie * FAR_LEN, FAR_LEN);

	if (is_read)
		dt_ok(dat_ep_post_rdma_read(f->a.ep, 1, &local, dt_cookie(cookie), &remote, 0));
	else
		dt_ok(dat_ep_post_rdma_write(f->a.ep, 1, &local, dt_cookie(cookie), &remote, 0));
}

/* A connection on which at most `limit` of FAR_READS Reads are in flight at a time. */
static void check_reads(struct conn_fixture *f, uint32_t out, uint32_t in, uint32_t limit)
{
	DAT_EP_PARAM param;
	struct hostile h;

	memset(&param, 0, sizeof(param));
	param.ep_attr.max_rdma_read_out = (DAT_COUNT)out;
	dt_ok(dat_ep_modify(f->a.ep, DAT_EP_FIELD_EP_ATTR_MAX_RDMA_READ_OUT, &param));
	far_connect(&h, f, in);
	for (uint32_t i = 0; i < FAR_READS; i++)
		post_far(f, true, FAR_AT, i);
	for (uint32_t i = 0; i < FAR_READS; i++) {
		const uint32_t asked = i + limit < FAR_READS ? i + limit : FAR_READS;
		const uint64_t end = dt_now_us() + DT_WAIT_US;

		/* the service thread may be about to send it, with the endpoint locked */
		while (reads_asked(&h) < asked && dt_now_us() < end)
			dt_no_event(f->a.request);
		for (unsigned int polls = 0; polls < 20; polls++)
			dt_no_event(f->a.request);
		assert_int_equal(reads_asked(&h), asked);
		answer_read(&h, i);
		dt_expect_dto(f->a.request, f->a.ep, i, DAT_DTO_SUCCESS, FAR_LEN);
		dt_check_bytes(f->buf.p + i * FAR_LEN, FAR_LEN, (unsigned char)i);
	}
	dt_ok(dat_ep_disconnect(f->a.ep, DAT_CLOSE_ABRUPT_FLAG));
	hostile_close(&h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_DISCONNECTED);
	dt_ok(dat_ep_reset(f->a.ep));
}

/* DTO-108 EP-RDMAR-37: The smaller of the two numbers is the limit. */
static void rdma_read__more_than_one_side_takes__the_rest_waits(void **state)
{
	for (uint32_t limit = 1; limit <= FAR_READS; limit++) {
		check_reads(*state, FAR_READS, limit, limit);
		check_reads(*state, limit, FAR_READS, limit);
	}
}

/* Makes the memory of FAR_KEY, which the peer shares on request. */
static void *far_memory(struct hostile *h, int *file_out)
{
	unsigned char *memory;

	*file_out = sealed_file(4096);
	memory = map_file(*file_out, 4096);
	h->table[FAR_KEY].rights = SOFT_RIGHT_REMOTE_WRITE | SOFT_RIGHT_REMOTE_READ;
	h->table[FAR_KEY].address = (uintptr_t)memory;
	h->table[FAR_KEY].length = 4096;
	atomic_store(&h->table[FAR_KEY].key, FAR_KEY);
	return memory;
}

static void far_give(struct hostile *h, const void *memory, int file)
{
	struct shm_wire_give give = {.key = FAR_KEY, .address = (uintptr_t)memory, .length = 4096};
	union shm_wire packet;

	hostile_await(h, SHM_WIRE_MAP_ASK, &packet);
	assert_int_equal(packet.word.word, FAR_KEY);
	put_head(&give.head, SHM_WIRE_MAP_GIVE);
	assert_true(hostile_send(h, &give, sizeof(give), &file, 1));
}

/* Waits until all packets were read: the last one asks for an invalid key and is answered. */
static void far_settle(struct hostile *h)
{
	union shm_wire packet;

	hostile_word(h, SHM_WIRE_MAP_ASK, UINT32_MAX);
	hostile_await(h, SHM_WIRE_MAP_REFUSE, &packet);
}

/*
 * Posts a Write that goes through the ring, and has its target mapped before the Write is placed.
 */
static void *far_begin_write(struct hostile *h, struct conn_fixture *f)
{
	unsigned char *memory;
	int file;

	far_connect(h, f, 4);
	memory = far_memory(h, &file);
	memset(memory, 'o', 4096);
	for (unsigned char i = 0; i < 3; i++)
		memset(f->buf.p + i * FAR_LEN, '0' + i, FAR_LEN);
	post_far(f, false, (uintptr_t)memory, 0);
	far_give(h, memory, file);
	far_settle(h);
	close(file);
	return memory;
}

/* The peer places the Write and reports it. */
static void far_end_write(struct hostile *h, struct conn_fixture *f, void *memory)
{
	for (unsigned int polls = 0; polls < 50; polls++)
		dt_no_event(f->a.request);
	dt_check_bytes(memory, FAR_LEN, 'o');
	memset(memory, '0', FAR_LEN);
	atomic_store(&h->mine->done, 1);
	hostile_word(h, SHM_WIRE_WAKE, 0);
	dt_expect_dto(f->a.request, f->a.ep, 0, DAT_DTO_SUCCESS, FAR_LEN);
	dt_expect_dto(f->a.request, f->a.ep, 1, DAT_DTO_SUCCESS, FAR_LEN);
}

/* The memory is written through the mapping now. */
static void far_check_mapped(struct hostile *h, struct conn_fixture *f, unsigned char *memory)
{
	post_far(f, false, (uintptr_t)memory + FAR_LEN, 2);
	dt_expect_dto(f->a.request, f->a.ep, 2, DAT_DTO_SUCCESS, FAR_LEN);
	dt_check_bytes(memory + FAR_LEN, FAR_LEN, '2');
	munmap(memory, 4096);
	hostile_close(h);
	dt_expect_conn(f->a.conn, f->a.ep, DAT_CONNECTION_EVENT_BROKEN);
}

/* DTO-40: The later of two Writes to the same bytes wins. */
static void rdma_write__memory_mapped_behind_a_ring_write__not_overtaken(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	unsigned char *memory = far_begin_write(&h, f);

	post_far(f, false, (uintptr_t)memory, 1);
	far_end_write(&h, f, memory);
	dt_check_bytes(memory, FAR_LEN, '1');
	far_check_mapped(&h, f, memory);
}

/* DTO-41: An RDMA Read after a Write returns the written bytes. */
static void rdma_read__memory_mapped_behind_a_ring_write__not_overtaken(void **state)
{
	struct conn_fixture *f = *state;
	struct hostile h;
	unsigned char *memory = far_begin_write(&h, f);

	post_far(f, true, (uintptr_t)memory, 1);
	far_end_write(&h, f, memory);
	dt_check_bytes(f->buf.p + FAR_LEN, FAR_LEN, '0');
	far_check_mapped(&h, f, memory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		conn_test(rdma_read__more_than_one_side_takes__the_rest_waits),
		cmocka_unit_test_setup_teardown(
			rdma_write__memory_mapped_behind_a_ring_write__not_overtaken, map_setup,
			map_teardown),
		cmocka_unit_test_setup_teardown(
			rdma_read__memory_mapped_behind_a_ring_write__not_overtaken, map_setup,
			map_teardown),
	};

	return cmocka_run_group_tests_name("hostile_order", tests, NULL, NULL);
}
