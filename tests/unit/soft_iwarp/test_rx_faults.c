// SPDX-License-Identifier: BSD-2-Clause
/*
 * Segments that are refused: the Terminate, what the consumer sees, and that no byte is placed,
 * neither by the segment nor by what follows it.
 */
#include "flow_stage.h"

#define RECEIVE 100u /* bytes of each of two Receives */

/* M, D and R of a Terminate. */
enum told { NOTHING = 0, SEGMENT = 0xc0, REQUEST_TOO = 0xe0 };

/* Regions that a peer may not use, each of 4096 bytes of the guarded memory. */
static struct {
	DAT_RMR_CONTEXT freed;	   /* of a region that was freed */
	DAT_RMR_CONTEXT elsewhere; /* in another zone */
	DAT_RMR_CONTEXT read_only; /* for the peer */
	DAT_RMR_CONTEXT write_only;
} keys;

static DAT_LMR_HANDLE add_region(DAT_PZ_HANDLE pz, DAT_MEM_PRIV_FLAGS priv, DAT_RMR_CONTEXT *key)
{
	DAT_REGION_DESCRIPTION region = {.for_va = flow.region};
	DAT_LMR_CONTEXT lkey;
	DAT_LMR_HANDLE lmr;

	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, pz,
			   DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG | priv,
			   &lmr, &lkey, key, NULL, NULL));
	return lmr;
}

static int open_faults(void **state)
{
	DAT_PZ_HANDLE pz;

	(void)open_flow(state);
	ok(core_pz_create(stage.ia, &pz));
	ok(core_lmr_free(add_region(stage.pz, DAT_MEM_PRIV_ALL_FLAG, &keys.freed)));
	(void)add_region(pz, DAT_MEM_PRIV_ALL_FLAG, &keys.elsewhere);
	(void)add_region(stage.pz, DAT_MEM_PRIV_REMOTE_READ_FLAG, &keys.read_only);
	(void)add_region(stage.pz, DAT_MEM_PRIV_REMOTE_WRITE_FLAG, &keys.write_only);
	return 0;
}

/* --- one refusal --- */

/* The Terminate has what TERM-03 to TERM-05 want of the FPDU. */
static void check_terminate(const struct taken *taken, enum told told, const struct fpdu *fpdu)
{
	const uint8_t *at = taken->payload + 4;
	size_t head = iw_ddp_head_size(fpdu->bytes[2]);
	size_t size = 4;

	assert_int_equal(taken->payload[2], told);
	assert_int_equal(taken->payload[3], 0);
	if (told & SEGMENT) {
		assert_int_equal(be_get16(at), be_get16(fpdu->bytes));
		assert_memory_equal(at + 2, fpdu->bytes + 2, head);
		size += 2 + head;
	}
	if (told == REQUEST_TOO) {
		assert_memory_equal(taken->payload + size, fpdu->bytes + 2 + head,
				    IW_READ_REQUEST_SIZE);
		size += IW_READ_REQUEST_SIZE;
	}
	assert_int_equal(taken->size, size);
}

/* Sends the FPDU and, in the same piece, a valid Send and a valid Write. */
static void put_with_more(const struct fpdu *fpdu)
{
	static uint8_t bytes[3 * sizeof(fpdu->bytes)];
	const struct iw_ddp send = {.opcode = IW_OP_SEND, .msn = 1, .is_last = true};
	const struct iw_ddp write = {.is_tagged = true,
				     .is_last = true,
				     .opcode = IW_OP_WRITE,
				     .stag = flow.rkey,
				     .offset = address_of(flow.region)};
	struct fpdu more;
	size_t size = fpdu->size;

	memcpy(bytes, fpdu->bytes, size);
	make_fpdu(&more, &send, "more", 4);
	memcpy(bytes + size, more.bytes, more.size);
	size += more.size;
	make_fpdu(&more, &write, "more", 4);
	memcpy(bytes + size, more.bytes, more.size);
	put(flow.fd, bytes, size + more.size);
}

/* With two Receives posted: all that the refusal of an FPDU shows. */
static void expect_refusal(const struct fpdu *fpdu, iw_error error, enum told told,
			   DAT_DTO_COMPLETION_STATUS status)
{
	struct taken taken;

	post_recv_at(0, RECEIVE);
	post_recv_at(1000, RECEIVE);
	put_with_more(fpdu);
	expect_dto(0, status, 0);
	expect_dto(1000, DAT_DTO_ERR_FLUSHED, 0);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(error, &taken);
	check_terminate(&taken, told, fpdu);
	expect_untouched(flow.region, REGION);
	end_flow();
}

/* --- headers --- */

struct head_case {
	uint8_t ddp, rdmap; /* the control bytes */
	uint32_t queue, msn, mo;
	uint32_t size; /* of the payload */
	iw_error error;
	enum told told;
};

#define T 0x80
#define L 0x40
#define SEND 0x43
#define READ 0x41

static const struct head_case head_cases[] = {
	/* DDP-02 TERM-26: versions */
	{T | L | 0, 0x40, 0, 0, 0, 4, IW_ERROR(1, 1, 4), NOTHING},
	{T | L | 2, 0x40, 0, 0, 0, 4, IW_ERROR(1, 1, 4), NOTHING},
	{T | L | 3, 0x40, 0, 0, 0, 4, IW_ERROR(1, 1, 4), NOTHING},
	{L | 0, SEND, 0, 1, 0, 4, IW_ERROR(1, 2, 6), NOTHING},
	{L | 2, SEND, 0, 1, 0, 4, IW_ERROR(1, 2, 6), NOTHING},
	{L | 3, SEND, 0, 1, 0, 4, IW_ERROR(1, 2, 6), NOTHING},
	/* RDMAP-02 TERM-20 */
	{L | 1, 0x03, 0, 1, 0, 4, IW_ERROR(0, 2, 5), NOTHING},
	{L | 1, 0x83, 0, 1, 0, 4, IW_ERROR(0, 2, 5), NOTHING},
	{T | L | 1, 0xc0, 0, 0, 0, 4, IW_ERROR(0, 2, 5), NOTHING},
	/* RDMAP-04 TERM-21: opcodes */
	{L | 1, 0x48, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x49, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x4a, 1, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x4b, 3, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x4c, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x4d, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x4e, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x4f, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	/* RDMAP-05: with the wrong T */
	{L | 1, 0x40, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x41, 0, 0, 0, 28, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x42, 0, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x43, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x44, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x45, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x46, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{T | L | 1, 0x47, 0, 0, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	/* DDP-05 RDMAP-06: queues */
	{L | 1, SEND, 3, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, SEND, 4, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, SEND, 0x80000000, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, SEND, 1, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, SEND, 2, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, 0x45, 1, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, READ, 0, 1, 0, 28, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, READ, 2, 1, 0, 28, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, 0x47, 0, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, 0x47, 1, 1, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	/* DDP-13 TERM-28: MSN */
	{L | 1, SEND, 0, 0, 0, 4, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, SEND, 0, 2, 0, 4, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, SEND, 0, 0x80000001, 0, 4, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 0, 0, 28, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 2, 0, 28, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 0x80000001, 0, 28, IW_ERROR(1, 2, 3), SEGMENT},
	/* DDP-14: MO of a first segment */
	{L | 1, SEND, 0, 1, 4, 4, IW_ERROR(1, 2, 4), SEGMENT},
	{1, SEND, 0, 1, 0xfffffffc, 4, IW_ERROR(1, 2, 4), SEGMENT},
	/* RDMAP-10 */
	{L | 1, READ, 1, 1, 0, 27, IW_ERROR(1, 2, 4), SEGMENT},
	{L | 1, READ, 1, 1, 0, 29, IW_ERROR(1, 2, 5), SEGMENT},
	{L | 1, READ, 1, 1, 0, 9000, IW_ERROR(1, 2, 5), SEGMENT},
	{1, READ, 1, 1, 0, 28, IW_ERROR(1, 2, 4), SEGMENT},
	{L | 1, READ, 1, 1, 4, 28, IW_ERROR(1, 2, 4), SEGMENT},
	/* DDP-24: two faults */
	{L | 2, 0x08, 0, 1, 0, 4, IW_ERROR(1, 2, 6), NOTHING},
	{T | L | 2, 0x00, 0, 0, 0, 4, IW_ERROR(1, 1, 4), NOTHING},
	{L | 1, 0x88, 0, 1, 0, 4, IW_ERROR(0, 2, 5), NOTHING},
	{L | 1, 0x48, 3, 1, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, 0x48, 0, 2, 0, 4, IW_ERROR(0, 2, 6), NOTHING},
	{L | 1, SEND, 1, 2, 0, 4, IW_ERROR(1, 2, 1), SEGMENT},
	{L | 1, SEND, 0, 2, 4, 4, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, SEND, 0, 2, 0, RECEIVE + 1, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, SEND, 0, 1, 4, RECEIVE + 1, IW_ERROR(1, 2, 4), SEGMENT},
	{L | 1, READ, 1, 2, 0, 27, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 2, 4, 28, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 2, 0, 29, IW_ERROR(1, 2, 3), SEGMENT},
	{L | 1, READ, 1, 1, 4, 29, IW_ERROR(1, 2, 5), SEGMENT},
	/* the reserved bits come back as they were */
	{L | 0x3c | 1, 0x70 | 3, 0, 2, 0, 4, IW_ERROR(1, 2, 3), SEGMENT},
};

static void make_head(struct fpdu *fpdu, const struct head_case *c)
{
	uint8_t *at = fpdu->bytes + 2;
	uint32_t head = iw_ddp_head_size(c->ddp);

	memset(at, 0, head + c->size);
	at[0] = c->ddp;
	at[1] = c->rdmap;
	if (!(c->ddp & T)) {
		be_put32(at + 6, c->queue);
		be_put32(at + 10, c->msn);
		be_put32(at + 14, c->mo);
	}
	close_fpdu(fpdu, head + c->size);
}

/* DDP-01 DDP-02 DDP-04 DDP-05 DDP-13 DDP-14 DDP-24 RDMAP-01 RDMAP-02 RDMAP-03 RDMAP-04 RDMAP-05
 * RDMAP-06 RDMAP-09 RDMAP-10 TERM-01 TERM-02 TERM-03 TERM-04 TERM-05 TERM-06 TERM-08 TERM-20
 * TERM-26 TERM-28 */
static void header__each_fault__terminate_and_nothing_placed(void **state)
{
	struct fpdu fpdu;

	(void)state;
	for (int has_crc = 0; has_crc < 2; has_crc++) {
		for (size_t i = 0; i < COUNT_OF(head_cases); i++) {
			be_called(has_crc ? FLAG_C : 0);
			make_head(&fpdu, &head_cases[i]);
			expect_refusal(&fpdu, head_cases[i].error, head_cases[i].told,
				       DAT_DTO_ERR_FLUSHED);
		}
	}
}

/* MPA-60 TERM-23: the first byte says how long the header is at least */
static void fpdu__shorter_than_its_header__refused(void **state)
{
	static const struct {
		uint16_t ulpdu;
		uint8_t first;
	} cases[] = {{0, 0}, {1, 0x41}, {1, 0xc1}, {13, 0xc1}, {17, 0x41}, {14, 0x41}};
	struct fpdu fpdu;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		be_called(0);
		memset(fpdu.bytes, 0, 64);
		fpdu.bytes[2] = cases[i].first;
		fpdu.bytes[3] = SEND;
		close_fpdu(&fpdu, cases[i].ulpdu);
		expect_refusal(&fpdu, IW_ERROR(1, 0, 0), NOTHING, DAT_DTO_ERR_FLUSHED);
	}
}

/* DDP-15 DTO-79 TERM-29 */
static void send__longer_than_the_receive__local_length(void **state)
{
	static const uint32_t sizes[] = {RECEIVE + 1, 9000, 65000};
	static uint8_t bytes[65000];
	struct fpdu fpdu;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sizes); i++) {
		struct iw_ddp ddp;

		be_called(0);
		ddp = send_header(0, true);
		make_fpdu(&fpdu, &ddp, bytes, sizes[i]);
		expect_refusal(&fpdu, IW_ERROR(1, 2, 5), SEGMENT, DAT_DTO_ERR_LOCAL_LENGTH);
	}
}

/* DDP-12 DDP-14 DDP-24 RDMAP-07 TERM-21 TERM-28: the second segment of a message */
static void send__second_segment_does_not_go_on__bad_response(void **state)
{
	static const struct {
		uint8_t rdmap;
		uint32_t msn, mo;
		uint32_t size;
		iw_error error;
		enum told told;
		DAT_DTO_COMPLETION_STATUS status;
	} cases[] = {
		{SEND, 2, 0, 4, IW_ERROR(1, 2, 3), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 0, 8, 4, IW_ERROR(1, 2, 3), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 1, 4, 4, IW_ERROR(1, 2, 4), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 1, 12, 4, IW_ERROR(1, 2, 4), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 1, 0, 4, IW_ERROR(1, 2, 4), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{0x45, 1, 8, 4, IW_ERROR(0, 2, 6), NOTHING, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 1, 8, RECEIVE - 7, IW_ERROR(1, 2, 5), SEGMENT, DAT_DTO_ERR_LOCAL_LENGTH},
		/* DDP-24: two faults */
		{0x45, 2, 8, 4, IW_ERROR(1, 2, 3), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
		{0x45, 1, 4, 4, IW_ERROR(0, 2, 6), NOTHING, DAT_DTO_ERR_BAD_RESPONSE},
		{SEND, 1, 4, RECEIVE - 3, IW_ERROR(1, 2, 4), SEGMENT, DAT_DTO_ERR_BAD_RESPONSE},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(cases); i++) {
		static const uint8_t zeros[RECEIVE];
		struct taken taken;
		struct fpdu fpdu;
		struct iw_ddp ddp;

		be_called(0);
		post_recv_at(0, RECEIVE);
		ddp = send_header(0, false);
		put_segment(&ddp, "01234567", 8);
		ddp.msn = cases[i].msn;
		ddp.mo = cases[i].mo;
		ddp.is_last = true;
		make_fpdu(&fpdu, &ddp, zeros, cases[i].size);
		fpdu.bytes[3] = cases[i].rdmap;
		put_with_more(&fpdu);
		expect_dto(0, cases[i].status, 0);
		expect(DAT_CONNECTION_EVENT_BROKEN);
		expect_terminate(cases[i].error, &taken);
		check_terminate(&taken, cases[i].told, &fpdu);
		expect_untouched(flow.region + 8, REGION - 8);
		end_flow();
	}
}

/* --- keys --- */

enum which { GOOD, UNKNOWN, ZERO, OLD, FREED, ELSEWHERE, READ_ONLY, WRITE_ONLY };

static uint32_t key_of(enum which which)
{
	switch (which) {
	case UNKNOWN:
		return 0x3ffff;
	case ZERO:
		return 0;
	case OLD:
		return flow.rkey - (1u << 18);
	case FREED:
		return keys.freed;
	case ELSEWHERE:
		return keys.elsewhere;
	case READ_ONLY:
		return keys.read_only;
	case WRITE_ONLY:
		return keys.write_only;
	default:
		return flow.rkey;
	}
}

static const struct key_case {
	enum which which;
	int64_t from; /* relative to the region; the number itself if it is huge */
	uint32_t size;
	iw_error write, read;
} key_cases[] = {
	{UNKNOWN, 0, 4, IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)},
	{ZERO, 0, 4, IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)},
	{OLD, 0, 4, IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)},
	{FREED, 0, 4, IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)},
	{GOOD, -1, 1, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)},
	{GOOD, -1, 4, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)},
	{GOOD, REGION, 1, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)},
	{GOOD, REGION - 4, 5, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)},
	{GOOD, REGION - 4, 60000, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)},
	{GOOD, 0, REGION + 1, 0, IW_ERROR(0, 1, 1)}, /* longer than any Write */
	{GOOD, 0, UINT32_MAX, 0, IW_ERROR(0, 1, 1)},
	{GOOD, REGION - 1, UINT32_MAX, 0, IW_ERROR(0, 1, 1)},
	{GOOD, INT64_MIN, 1, IW_ERROR(1, 1, 1), IW_ERROR(0, 1, 1)}, /* ends at 2^64 */
	{GOOD, INT64_MIN, 2, IW_ERROR(1, 1, 3), IW_ERROR(0, 1, 4)}, /* wraps */
	{ELSEWHERE, 0, 4, IW_ERROR(1, 1, 2), IW_ERROR(0, 1, 3)},
	/* DDP-24: STag, zone, wrap, range, privilege */
	{UNKNOWN, INT64_MIN, 2, IW_ERROR(1, 1, 0), IW_ERROR(0, 1, 0)},
	{ELSEWHERE, INT64_MIN, 2, IW_ERROR(1, 1, 2), IW_ERROR(0, 1, 3)},
	{ELSEWHERE, -1, 4, IW_ERROR(1, 1, 2), IW_ERROR(0, 1, 3)},
	{READ_ONLY, 0, 4, IW_ERROR(0, 1, 2), 0},
	{READ_ONLY, -1, 4, IW_ERROR(1, 1, 1), 0},
	{READ_ONLY, INT64_MIN, 2, IW_ERROR(1, 1, 3), 0},
	{WRITE_ONLY, 0, 4, 0, IW_ERROR(0, 1, 2)},
	{WRITE_ONLY, -1, 4, 0, IW_ERROR(0, 1, 1)},
	{WRITE_ONLY, INT64_MIN, 2, 0, IW_ERROR(0, 1, 4)},
};

static uint64_t target_of(const struct key_case *c)
{
	return c->from == INT64_MIN ? UINT64_MAX : address_of(flow.region) + (uint64_t)c->from;
}

/* DDP-19 DDP-20 DDP-21 DDP-22 DDP-23 DDP-24 RDMAP-16 TERM-17 TERM-24 DTO-90 DTO-91 DTO-92 DTO-93
 * DTO-94 DTO-97 */
static void write__each_fault_of_its_target__refused(void **state)
{
	static const uint8_t zeros[60000];
	struct fpdu fpdu;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(key_cases); i++) {
		struct iw_ddp ddp = {.is_tagged = true,
				     .opcode = IW_OP_WRITE,
				     .stag = key_of(key_cases[i].which),
				     .offset = target_of(&key_cases[i]),
				     .is_last = i & 1};

		if (!key_cases[i].write)
			continue;
		be_called(i % 3 ? 0 : FLAG_C);
		make_fpdu(&fpdu, &ddp, zeros, key_cases[i].size);
		expect_refusal(&fpdu, key_cases[i].write, SEGMENT, DAT_DTO_ERR_FLUSHED);
	}
}

static void make_read(struct fpdu *fpdu, const struct iw_read_request *request)
{
	const struct iw_ddp ddp = {
		.is_last = true, .opcode = IW_OP_READ_REQUEST, .queue = IW_QUEUE_READ, .msn = 1};
	uint8_t payload[IW_READ_REQUEST_SIZE];

	iw_read_request_put(request, payload);
	make_fpdu(fpdu, &ddp, payload, sizeof(payload));
}

/* RDMAP-20 RDMAP-21 TERM-16 TERM-17 */
static void read_request__each_fault_of_its_source__refused(void **state)
{
	struct fpdu fpdu;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(key_cases); i++) {
		const struct iw_read_request request = {.sink_stag = 0x12345678,
							.sink_offset = 0x1122334455667788,
							.size = key_cases[i].size,
							.source_stag = key_of(key_cases[i].which),
							.source_offset = target_of(&key_cases[i])};

		if (!key_cases[i].read)
			continue;
		be_called(0);
		make_read(&fpdu, &request);
		expect_refusal(&fpdu, key_cases[i].read, REQUEST_TOO, DAT_DTO_ERR_FLUSHED);
	}
}

/* The peer sends one Read Request more than it may; it does not read the answers before. */
static void read_beyond(uint32_t ird)
{
	static uint8_t stream[64 * 64];
	struct taken taken;
	struct fpdu fpdu;
	size_t size = 0;

	for (uint32_t i = 0; i <= ird; i++) {
		/* large, so that none is answered completely while they are taken up */
		const struct iw_read_request request = {.sink_stag = i,
							.size = REGION,
							.source_stag = flow.rkey,
							.source_offset = address_of(flow.region)};

		make_read(&fpdu, &request);
		be_put32(fpdu.bytes + 2 + 10, i + 1);
		memcpy(stream + size, fpdu.bytes, fpdu.size);
		size += fpdu.size;
	}
	put(flow.fd, stream, size);
	expect(DAT_CONNECTION_EVENT_BROKEN);
	expect_terminate(IW_ERROR(1, 2, 2), &taken);
	check_terminate(&taken, SEGMENT, &fpdu);
	end_flow();
}

/* RDMAP-26 TERM-27: no buffer of queue 1 */
static void read_request__one_more_than_the_ird__refused(void **state)
{
	struct frame reply;

	(void)state;
	reply = be_called_with(0, 4, 4);
	assert_int_equal(frame_words(&reply) >> 16 & 0x3fff, 9);
	read_beyond(9);
}

/* MPA-43 RDMAP-26: the peer's reply has raised our IRD */
static void read_request__one_more_than_the_ord_of_the_reply__refused(void **state)
{
	uint8_t rtr[20];

	(void)state;
	be_calling_with(0, 4, 16);
	get(flow.fd, rtr, sizeof(rtr));
	read_beyond(16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_faults, close_stage)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(header__each_fault__terminate_and_nothing_placed),
		TEST(fpdu__shorter_than_its_header__refused),
		TEST(send__longer_than_the_receive__local_length),
		TEST(send__second_segment_does_not_go_on__bad_response),
		TEST(write__each_fault_of_its_target__refused),
		TEST(read_request__each_fault_of_its_source__refused),
		TEST(read_request__one_more_than_the_ird__refused),
		TEST(read_request__one_more_than_the_ord_of_the_reply__refused),
	};

	return cmocka_run_group_tests(tests, provide, NULL);
}
