// SPDX-License-Identifier: BSD-2-Clause
/*
 * The data transfer with a peer that the test plays (setup_stage.h): connections that are
 * established, FPDUs byte by byte, and memory with guards.
 */
#ifndef TESTS_SOFT_IWARP_FLOW_STAGE_H
#define TESTS_SOFT_IWARP_FLOW_STAGE_H

#include "setup_peer.h"

#include "core/base/instance.h"
#include "core/ep/extra.h"
#include "shared/bytes.h"
#include "soft/iwarp/conn.h"
#include "soft/iwarp/wire/crc.h"
#include "soft/iwarp/wire/formats.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* --- memory: a region in the middle of more bytes, which nobody may change --- */

#define REGION (256u * 1024u)
#define GUARD 4096u
#define FILL 0xa5

static struct flow {
	int fd; /* the peer's socket */
	bool has_crc;
	bool has_rtr;		/* it was read by get_fpdu() */
	bool is_own;		/* the peer is another engine of ours: */
	uint64_t counts;	/* that the library has told; get_fpdu() takes them */
	uint32_t sends, writes; /* that the peer has counted */
	DAT_EP_HANDLE ep;
	uint8_t bytes[GUARD + REGION + GUARD];
	uint8_t *region;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey;
	uint32_t msn[IW_QUEUES]; /* of the peer's next message in each queue */
} flow;

static inline void fill_memory(void)
{
	memset(flow.bytes, FILL, sizeof(flow.bytes));
}

static inline void expect_untouched(const uint8_t *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (from[i] != FILL)
			fail_msg("byte %zu of the memory was changed", i);
}

static inline void expect_guards(void)
{
	expect_untouched(flow.bytes, GUARD);
	expect_untouched(flow.region + REGION, GUARD);
}

/* A byte of a pattern without short repetitions. */
static inline uint8_t pattern(size_t at)
{
	return (uint8_t)(at * 131 + (at >> 8) * 17 + (at >> 16));
}

static inline void make_pattern(uint8_t *to, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = pattern(i);
}

static inline void expect_pattern(const uint8_t *from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (from[i] != pattern(i))
			fail_msg("byte %zu is wrong", i);
}

#if defined(__clang__)
#define UNORDERED __attribute__((no_sanitize("thread"), noinline))
#else
#define UNORDERED __attribute__((no_sanitize_thread, noinline))
#endif

/* A byte that the library may be about to place, as a consumer polls it. */
static UNORDERED __attribute__((unused)) uint8_t peek(const uint8_t *at)
{
	return *(const volatile uint8_t *)at;
}

static DAT_MEM_PRIV_FLAGS region_priv = DAT_MEM_PRIV_ALL_FLAG;

static inline void register_region(void)
{
	DAT_REGION_DESCRIPTION region;

	flow.region = flow.bytes + GUARD;
	region.for_va = flow.region;
	fill_memory();
	ok(core_lmr_create(stage.ia, DAT_MEM_TYPE_VIRTUAL, region, REGION, stage.pz, region_priv,
			   &flow.lmr, &flow.lkey, &flow.rkey, NULL, NULL));
}

static inline uint64_t address_of(const void *at)
{
	return (uint64_t)(uintptr_t)at;
}

static inline DAT_LMR_TRIPLET segment_at(size_t offset, size_t size)
{
	return (DAT_LMR_TRIPLET){.lmr_context = flow.lkey,
				 .virtual_address = address_of(flow.region + offset),
				 .segment_length = size};
}

/* --- what a wrapped sendmsg is given --- */

static inline size_t size_of(const struct msghdr *message)
{
	size_t size = 0;

	for (size_t i = 0; i < message->msg_iovlen; i++) {
		assert_true(message->msg_iov[i].iov_len > 0);
		size += message->msg_iov[i].iov_len;
	}
	return size;
}

/* --- connections --- */

/* The library's socket of the connection, found by its address. */
static inline int fd_of_flow(void)
{
	struct sockaddr_in ours, peer;
	socklen_t size = sizeof(ours);

	assert_int_equal(getsockname(flow.fd, (struct sockaddr *)&ours, &size), 0);
	for (int fd = 0; fd < 1024; fd++) {
		size = sizeof(peer);
		if (!getpeername(fd, (struct sockaddr *)&peer, &size) &&
		    peer.sin_family == AF_INET && peer.sin_port == ours.sin_port)
			return fd;
	}
	fail();
	return -1;
}

static inline void begin_flow(int fd, DAT_EP_HANDLE ep, bool has_crc)
{
	flow.fd = fd;
	flow.ep = ep;
	flow.has_crc = has_crc;
	flow.has_rtr = false;
	flow.is_own = false;
	flow.counts = flow.sends = flow.writes = 0;
	for (unsigned i = 0; i < IW_QUEUES; i++)
		flow.msn[i] = 1;
	fill_memory();
}

/* The peer is a foreign initiator without the peer-to-peer model; IRD and ORD are unknown. */
static inline void be_called(uint8_t flags)
{
	struct frame frame = make_frame(REQUEST, flags, 1, NULL, 0);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.b, flags & FLAG_C);
}

/* The peer is a foreign initiator of RFC 6581, with those depths. */
static inline struct frame be_called_with(uint8_t flags, uint32_t ird, uint32_t ord)
{
	struct frame frame = make_enhanced(REQUEST, flags, WORDS(0, ird, ord), NULL, 0);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.b, flags & FLAG_C);
	return frame;
}

static uint8_t own_flags = CM_COUNTS;

/* The peer is another engine of ours, as the initiator, with these flags. */
static inline void be_called_by_own(uint8_t flags)
{
	const struct cm_request request = {.flags = own_flags,
					   .qual = stage.qual,
					   .nonce = 1,
					   .port = 4711,
					   .read_in = 8,
					   .read_out = 8};
	uint8_t bytes[CM_MAX];
	size_t size = cm_put_request(&request, bytes);
	struct frame frame =
		make_enhanced(REQUEST, flags, WORDS(WORD_A | WORD_C, 9, 9), bytes, size);
	int fd = dial(stage.qual);

	put_frame(fd, &frame);
	take_request();
	accept_with(NULL, 0);
	frame = get_frame(fd, REPLY);
	begin_flow(fd, stage.b, flags & FLAG_C);
	flow.is_own = true;
}

/* The peer sends something, so that the RTR is not repeated from now on (IWCM-52). */
static inline void speak(void);

/* The peer is a foreign responder, with those depths. */
static inline void be_calling_with(uint8_t flags, uint32_t ird, uint32_t ord)
{
	uint16_t port;
	int listener = listen_at(0, &port);
	struct frame frame;
	int fd;

	connect_with(port, WAIT_US, NULL, 0);
	fd = answer_call(listener);
	close(listener);
	get_frame(fd, REQUEST);
	frame = make_enhanced(REPLY, flags, WORDS(WORD_A | WORD_C, ird, ord), NULL, 0);
	put_frame(fd, &frame);
	expect(DAT_CONNECTION_EVENT_ESTABLISHED);
	begin_flow(fd, stage.a, flags & FLAG_C);
	speak();
}

static inline void post_recv_at(size_t offset, size_t size)
{
	DAT_LMR_TRIPLET segment = segment_at(offset, size);
	DAT_DTO_COOKIE cookie = {.as_64 = offset};

	ok(core_ep_post_recv(flow.ep, 1, &segment, cookie, DAT_COMPLETION_DEFAULT_FLAG));
}

static inline void post_send_at(size_t offset, size_t size, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment = segment_at(offset, size);
	DAT_DTO_COOKIE cookie = {.as_64 = offset};

	ok(core_ep_post_send(flow.ep, 1, &segment, cookie, flags));
}

static inline void post_write_at(size_t offset, size_t size, DAT_RMR_CONTEXT context,
				 uint64_t target, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment = segment_at(offset, size);
	DAT_DTO_COOKIE cookie = {.as_64 = offset};
	DAT_RMR_TRIPLET remote = {
		.rmr_context = context, .target_address = target, .segment_length = size};

	ok(core_ep_post_rdma_write(flow.ep, 1, &segment, cookie, &remote, flags));
}

static inline void post_read_at(size_t offset, size_t size, DAT_RMR_CONTEXT context,
				uint64_t target, DAT_COMPLETION_FLAGS flags)
{
	DAT_LMR_TRIPLET segment = segment_at(offset, size);
	DAT_DTO_COOKIE cookie = {.as_64 = offset};
	DAT_RMR_TRIPLET remote = {
		.rmr_context = context, .target_address = target, .segment_length = size};

	ok(core_ep_post_rdma_read(flow.ep, 1, &segment, cookie, &remote, flags));
}

/* The next event is the completion of what was posted with that offset. */
static inline void expect_dto(size_t offset, DAT_DTO_COMPLETION_STATUS status, size_t size)
{
	DAT_EVENT event = next_of(stage.evd);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event.event_data.dto_completion_event_data;

	assert_int_equal(event.event_number, DAT_DTO_COMPLETION_EVENT);
	assert_int_equal(dto->user_cookie.as_64, offset);
	assert_int_equal(dto->status, status);
	assert_int_equal(dto->transfered_length, status == DAT_DTO_SUCCESS ? size : 0);
}

/* --- FPDUs of the peer --- */

struct fpdu {
	uint8_t bytes[2 + 65535 + 3 + 4];
	size_t size;
};

/* The caller changes the ULPDU and closes it again. */
static inline void close_fpdu(struct fpdu *fpdu, size_t ulpdu)
{
	size_t body = 2 + ulpdu + iw_fpdu_pad((uint32_t)ulpdu);

	be_put16(fpdu->bytes, (uint16_t)ulpdu);
	memset(fpdu->bytes + 2 + ulpdu, 0, body - 2 - ulpdu + 4);
	if (flow.has_crc)
		iw_crc_put(iw_crc32c(0, fpdu->bytes, body), fpdu->bytes + body);
	fpdu->size = body + 4;
}

static inline void make_fpdu(struct fpdu *fpdu, const struct iw_ddp *ddp, const void *payload,
			     size_t size)
{
	uint32_t head = iw_ddp_put(ddp, fpdu->bytes + 2);

	if (size)
		memcpy(fpdu->bytes + 2 + head, payload, size);
	close_fpdu(fpdu, head + size);
}

static inline void put_fpdu(const struct fpdu *fpdu)
{
	put(flow.fd, fpdu->bytes, fpdu->size);
}

static inline void put_segment(const struct iw_ddp *ddp, const void *payload, size_t size)
{
	struct fpdu fpdu;

	make_fpdu(&fpdu, ddp, payload, size);
	put_fpdu(&fpdu);
}

static inline struct iw_ddp send_header(uint32_t mo, bool is_last)
{
	return (struct iw_ddp){.opcode = IW_OP_SEND,
			       .msn = is_last ? flow.msn[0]++ : flow.msn[0],
			       .mo = mo,
			       .is_last = is_last};
}

/* The peer sends a message of one segment. */
static inline void peer_send(const void *payload, size_t size)
{
	struct iw_ddp ddp = send_header(0, true);

	put_segment(&ddp, payload, size);
}

static inline void peer_write(uint32_t stag, uint64_t offset, const void *payload, size_t size)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = true,
				   .opcode = IW_OP_WRITE,
				   .stag = stag,
				   .offset = offset};

	put_segment(&ddp, payload, size);
}

#define COUNTS 2u /* the STag by which two of ours tell what they have carried out */

/* A peer of ours has carried out so many Sends and Writes more. */
static inline void peer_counts(uint32_t sends, uint32_t writes)
{
	flow.sends += sends;
	flow.writes += writes;
	peer_write(COUNTS, (uint64_t)flow.sends << 32 | flow.writes, NULL, 0);
}

static inline void speak(void)
{
	peer_write(0, 0, NULL, 0);
	expect_served();
}

static inline void peer_respond(uint32_t stag, uint64_t offset, const void *payload, size_t size,
				bool is_last)
{
	const struct iw_ddp ddp = {.is_tagged = true,
				   .is_last = is_last,
				   .opcode = IW_OP_READ_RESPONSE,
				   .stag = stag,
				   .offset = offset};

	put_segment(&ddp, payload, size);
}

static inline void peer_read(const struct iw_read_request *request)
{
	const struct iw_ddp ddp = {.is_last = true,
				   .opcode = IW_OP_READ_REQUEST,
				   .queue = IW_QUEUE_READ,
				   .msn = flow.msn[1]++};
	uint8_t payload[IW_READ_REQUEST_SIZE];

	iw_read_request_put(request, payload);
	put_segment(&ddp, payload, sizeof(payload));
}

static inline void peer_terminate(const void *payload, size_t size)
{
	const struct iw_ddp ddp = {
		.is_last = true, .opcode = IW_OP_TERMINATE, .queue = IW_QUEUE_TERMINATE, .msn = 1};

	put_segment(&ddp, payload, size);
}

/* --- FPDUs of the library --- */

struct taken {
	struct iw_ddp ddp;
	size_t ulpdu;
	uint32_t head;
	uint8_t bytes[65535];
	const uint8_t *payload;
	size_t size;
};

/* Reads one FPDU, and checks what each must be. */
static inline void get_any_fpdu(struct taken *taken)
{
	uint8_t length[2], tail[7];
	size_t pad;

	get(flow.fd, length, 2);
	taken->ulpdu = be_get16(length);
	get(flow.fd, taken->bytes, taken->ulpdu);
	pad = iw_fpdu_pad((uint32_t)taken->ulpdu);
	get(flow.fd, tail, pad + 4);
	for (size_t i = 0; i < pad; i++)
		assert_int_equal(tail[i], 0);
	if (flow.has_crc) {
		uint32_t crc = iw_crc32c(0, length, 2);

		crc = iw_crc32c(crc, taken->bytes, taken->ulpdu);
		crc = iw_crc32c(crc, tail, pad);
		assert_int_equal(iw_crc_get(tail + pad), crc);
	} else {
		assert_int_equal(iw_crc_get(tail + pad), 0);
	}
	assert_int_equal(
		iw_ddp_get_later(taken->bytes, (uint32_t)taken->ulpdu, IW_OPS_LATER, &taken->ddp),
		IW_NO_ERROR);
	taken->head = iw_ddp_head_size(taken->bytes[0]);
	taken->payload = taken->bytes + taken->head;
	taken->size = taken->ulpdu - taken->head;
}

/* The same, but leaves out repetitions of the RTR, which depend on the time (IWCM-52). */
static inline void get_fpdu(struct taken *taken)
{
	bool is_rtr;

	for (;;) {
		get_any_fpdu(taken);
		if (flow.is_own && taken->ddp.opcode == IW_OP_WRITE && taken->ddp.stag == COUNTS &&
		    !taken->size) {
			flow.counts = taken->ddp.offset;
			continue;
		}
		is_rtr = taken->ddp.opcode == IW_OP_WRITE && taken->ddp.stag == 1 && !taken->size;
		if (!is_rtr || !flow.has_rtr || flow.ep != stage.a)
			break;
	}
	flow.has_rtr |= is_rtr;
}

/* A Read Request of the library. */
static inline struct iw_read_request get_read_request(void)
{
	struct iw_read_request request;
	struct taken taken;

	get_fpdu(&taken);
	assert_int_equal(taken.ddp.opcode, IW_OP_READ_REQUEST);
	assert_int_equal(taken.size, IW_READ_REQUEST_SIZE);
	iw_read_request_get(taken.payload, &request);
	return request;
}

/* --- RFC 7306 --- */

static struct {
	struct core_adapter *adapter; /* whose front was exchanged; else NULL */
	const struct core_front *plain;
	struct core_front all;
} generation;

/* The endpoints take what those of DAT 2.0 do, and the region, too. */
static inline __attribute__((unused)) void take_all(void)
{
	struct core_ia *ia = core_handle_lock(stage.ia, DAT_HANDLE_TYPE_IA);

	assert_non_null(ia);
	generation.adapter = ia->adapter;
	generation.plain = ia->adapter->front;
	generation.all = *generation.plain;
	generation.all.mem_priv |= CORE_MEM_PRIV_REMOTE_ATOMIC;
	ia->adapter->front = &generation.all;
	core_handle_unlock(ia->cell);
	ok(core_ep_take_immediate(stage.a));
	ok(core_ep_take_immediate(stage.b));
	own_flags = CM_COUNTS | CM_IMMEDIATE | CM_ATOMICS;
	ok(core_lmr_free(flow.lmr));
	region_priv |= CORE_MEM_PRIV_REMOTE_ATOMIC;
	register_region();
}

/* Undoes that, before the instance is closed. */
static inline __attribute__((unused)) void take_no_more(void)
{
	if (generation.adapter)
		generation.adapter->front = generation.plain;
	generation.adapter = NULL;
	own_flags = CM_COUNTS;
	region_priv = DAT_MEM_PRIV_ALL_FLAG;
}

/* The library's Terminate with that error, which is the last that it sends; the rest of it. */
static inline void expect_terminate(iw_error error, struct taken *taken)
{
	struct taken local;

	if (!taken)
		taken = &local;
	get_fpdu(taken);
	assert_int_equal(taken->ddp.opcode, IW_OP_TERMINATE);
	assert_int_equal(taken->ddp.msn, 1);
	assert_int_equal(taken->ddp.mo, 0);
	assert_true(taken->ddp.is_last);
	assert_true(taken->size >= 4);
	if (be_get16(taken->payload) != error)
		fail_msg("Terminate %04x in place of %04x", be_get16(taken->payload), error);
	expect_end(flow.fd);
}

/* --- a shared receive queue --- */

static struct shared {
	DAT_SRQ_HANDLE srq;
	DAT_EP_HANDLE plain;
} shared;

/* Until end_shared(), b is an endpoint of an SRQ. */
static inline void begin_shared(void)
{
	DAT_SRQ_ATTR attr = {
		.max_recv_dtos = 4, .max_recv_iov = 1, .low_watermark = DAT_SRQ_LW_DEFAULT};
	DAT_EP_PARAM param;

	shared.plain = stage.b;
	ok(core_ep_query(shared.plain, DAT_EP_FIELD_ALL, &param));
	ok(core_srq_create(stage.ia, stage.pz, &attr, &shared.srq));
	ok(core_ep_create_with_srq(stage.ia, stage.pz, stage.evd, stage.evd, stage.evd, shared.srq,
				   &param.ep_attr, &stage.b));
}

static inline void end_shared(void)
{
	ok(core_ep_free(stage.b));
	stage.b = shared.plain;
	ok(core_srq_free(shared.srq));
}

/* A buffer at the begin of the region; the cookie is 0. */
static inline void post_shared(size_t size)
{
	DAT_LMR_TRIPLET segment = segment_at(0, size);

	ok(core_srq_post_recv(shared.srq, 1, &segment, (DAT_DTO_COOKIE){.as_64 = 0}));
}

static inline void expect_available(uint32_t count)
{
	DAT_SRQ_PARAM param;

	ok(core_srq_query(shared.srq, DAT_SRQ_FIELD_ALL, &param));
	assert_int_equal(param.available_dto_count, count);
}

/* --- the end --- */

/* The peer ends by a reset. */
static inline void reset_peer(void)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	assert_int_equal(setsockopt(flow.fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now)), 0);
	close(flow.fd);
	flow.fd = -1;
}

/* The end of a test's connection: after its last event. */
static inline void end_flow(void)
{
	close(flow.fd);
	ok(core_ep_reset(flow.ep));
	expect_quiet(stage.evd);
	expect_guards();
}

/* The peer closes the connection, which nothing is outstanding on. */
static inline void hang_up(void)
{
	assert_int_equal(shutdown(flow.fd, SHUT_WR), 0);
	expect(DAT_CONNECTION_EVENT_DISCONNECTED);
	end_flow();
}

static inline int open_flow(void **state)
{
	(void)open_stage(state);
	register_region();
	return 0;
}

/* The same on an adapter with other settings. A test program has at most one such adapter. */
static inline int open_flow_with(const char *name, const char *device)
{
	static bool is_provided;

	if (!is_provided)
		add_adapter(name, device);
	is_provided = true;
	(void)open_adapter(name);
	register_region();
	return 0;
}

/*
 * Waiting calls do not poll here. The service thread alone reads the socket, unless the test polls,
 * and has done so when expect_served() returns. No look at the peer causes a pass.
 */
static inline int open_sleepy(void **state)
{
	(void)state;
	(void)open_adapter("sleepy");
	register_region();
	return 0;
}

#endif
