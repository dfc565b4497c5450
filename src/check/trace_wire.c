// SPDX-License-Identifier: BSD-2-Clause
/*
 * What was transferred, as a pcapng file that Wireshark opens: the DDP segments with RDMAP messages that
 * an iWARP adapter would send, in a TCP connection that is made up for each connection of an endpoint.
 * One end has the address 10.x.x.x, with the number of the process, the other one 192.0.2.1. All
 * processes of one dat_trace append to one file, a packet at a time. The lock of the objects guards it.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "check/memory.h"
#include "check/report.h"
#include "check/trace.h"

#define PIECE 16384u /* bytes of the program in one packet */
#define HEADS 128u   /* all headers and the end of a packet */
#define PEER_ADDRESS 0xc0000201u
#define PEER_PORT 4000u
#define LINK_IPV4 228u /* packets begin with the header of IPv4 */

enum { OUTWARD, INWARD };
enum { FIN = 0x01, SYN = 0x02, PUSH = 0x08, ACK = 0x10 };
enum { RDMA_WRITE, READ_REQUEST, READ_RESPONSE, SEND, SOLICITED = 5 };
enum { QUEUE_SEND, QUEUE_READ };

static char *path;		      /* set once */
static uint32_t flows;		      /* connections of this process so far */
static unsigned char data[PIECE + 8]; /* of the packet that is written, with its padding and CRC */

/* ---- bytes ---- */

/* A header that is being filled. */
struct head {
	unsigned char bytes[HEADS];
	size_t len;
};

static void put(struct head *head, uint64_t value, size_t size)
{
	while (size--)
		head->bytes[head->len++] = (unsigned char)(value >> 8 * size);
}

/* The blocks of the file have the order of this machine. */
static void put_native(struct head *head, uint32_t value)
{
	memcpy(head->bytes + head->len, &value, sizeof(value));
	head->len += sizeof(value);
}

/* ---- the file ---- */

static void append(const struct iovec *pieces, int count)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	ssize_t written = fd >= 0 ? writev(fd, pieces, count) : 0;

	(void)written; /* there is nobody to tell */
	if (fd >= 0)
		close(fd);
}

/* The section and the interface, whose time stamps are nanoseconds. */
static void begin_file(int fd)
{
	struct head head = {.len = 0};
	ssize_t written;

	put_native(&head, 0x0a0d0d0a);
	put_native(&head, 28);
	put_native(&head, 0x1a2b3c4d);
	put_native(&head, 1); /* version 1.0, in either order: the minor half is zero */
	put_native(&head, UINT32_MAX);
	put_native(&head, UINT32_MAX); /* length of the section: not known */
	put_native(&head, 28);
	put_native(&head, 1);
	put_native(&head, 32);
	put_native(&head, LINK_IPV4);
	put_native(&head, 0);				       /* packets have any length */
	memcpy(head.bytes + head.len, &(uint16_t[]){9, 1}, 4); /* if_tsresol, of one byte */
	head.len += 4;
	memcpy(head.bytes + head.len, "\x09\0\0\0", 4);
	head.len += 4;
	put_native(&head, 0);
	put_native(&head, 32);
	written = write(fd, head.bytes, head.len);
	(void)written;
}

void trace_wire_init(const char *name)
{
	int fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, S_IRUSR | S_IWUSR);
	struct stat status;

	if (fd < 0)
		return;
	/* another process of the same dat_trace may begin at the same time */
	if (flock(fd, LOCK_EX) == 0 && fstat(fd, &status) == 0 && status.st_size == 0)
		begin_file(fd);
	close(fd);
	path = strdup(name);
}

bool trace_wire_is_on(void)
{
	return path != NULL;
}

/* ---- packets ---- */

static void put_block(struct head *head, size_t packet)
{
	struct timespec now;
	uint64_t ns;

	clock_gettime(CLOCK_REALTIME, &now);
	ns = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	put_native(head, 6); /* an enhanced packet block */
	put_native(head, (uint32_t)(32 + (packet + 3) / 4 * 4));
	put_native(head, 0);
	put_native(head, (uint32_t)(ns >> 32));
	put_native(head, (uint32_t)ns);
	put_native(head, (uint32_t)packet);
	put_native(head, (uint32_t)packet);
}

static uint32_t sum_words(uint32_t sum, const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 ? bytes[i] : (uint32_t)bytes[i] << 8;
	return (sum & 0xffff) + (sum >> 16);
}

static void set_sum(unsigned char *at, uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16)) & 0xffff;
	at[0] = (unsigned char)(sum >> 8);
	at[1] = (unsigned char)sum;
}

static void put_ip(struct head *head, int direction, size_t len)
{
	uint32_t mine = 0x0a000000u | ((uint32_t)getpid() & 0xffffff);
	unsigned char *begin = head->bytes + head->len;

	put(head, 0x4500, 2);
	put(head, 20 + len, 2);
	put(head, 0x00004000, 4);
	put(head, 64 << 8 | IPPROTO_TCP, 2);
	put(head, 0, 2);
	put(head, direction == OUTWARD ? mine : PEER_ADDRESS, 4);
	put(head, direction == OUTWARD ? PEER_ADDRESS : mine, 4);
	set_sum(begin + 10, sum_words(0, begin, 20));
}

static void put_tcp(struct head *head, const struct check_flow *flow, int direction, unsigned flags)
{
	put(head, direction == OUTWARD ? flow->port : PEER_PORT, 2);
	put(head, direction == OUTWARD ? PEER_PORT : flow->port, 2);
	put(head, flow->sequence[direction], 4);
	put(head, flags & ACK ? flow->sequence[!direction] : 0, 4);
	put(head, 0x5000 | flags, 2);
	put(head, 0xffff, 2); /* window */
	put(head, 0, 4);
}

/*
 * Writes a packet: the headers, `ulp` behind them, then `size` bytes of `data`, which have room for the
 * padding of the block.
 */
static void put_packet(struct check_flow *flow, int direction, unsigned flags,
		       const struct head *ulp, size_t size)
{
	size_t tcp = 20 + ulp->len + size, packet = 20 + tcp, padding = (4 - packet % 4) % 4;
	uint32_t length = (uint32_t)(32 + packet + padding), sum;
	struct head head = {.len = 0};
	struct iovec pieces[] = {
		{.iov_base = NULL}, {data, size}, {"\0\0\0", padding}, {&length, sizeof(length)}};

	put_block(&head, packet);
	put_ip(&head, direction, tcp);
	put_tcp(&head, flow, direction, flags);
	memcpy(head.bytes + head.len, ulp->bytes, ulp->len);
	head.len += ulp->len;
	/* the pseudo header: addresses, protocol, length */
	sum = sum_words((uint32_t)(IPPROTO_TCP + tcp), head.bytes + 28 + 12, 8);
	sum = sum_words(sum, head.bytes + 28 + 20, head.len - 48);
	set_sum(head.bytes + 28 + 20 + 16, sum_words(sum, data, size));
	pieces[0] = (struct iovec){head.bytes, head.len};
	append(pieces, 4);
	flow->sequence[direction] += (uint32_t)(ulp->len + size) + !!(flags & (SYN | FIN));
}

/* ---- connections ---- */

static void put_mpa(struct check_flow *flow, int direction, const char *key)
{
	struct head frame = {.len = 16};

	memcpy(frame.bytes, key, 16);
	put(&frame, 0x0001, 2); /* no markers, no CRC; revision 1 */
	put(&frame, 0, 2);
	put_packet(flow, direction, PUSH | ACK, &frame, 0);
}

void trace_wire_open_locked(struct check_object *ep)
{
	struct check_flow *flow = &ep->life->ep.flow;
	const struct head none = {.len = 0};
	int asks = flow->is_passive ? INWARD : OUTWARD;

	if (!path || flow->is_open)
		return;
	*flow = (struct check_flow){.is_open = true,
				    .is_passive = flow->is_passive,
				    .port = (uint16_t)(10000 + flows++ % 50000)};
	put_packet(flow, asks, SYN, &none, 0);
	put_packet(flow, !asks, SYN | ACK, &none, 0);
	put_packet(flow, asks, ACK, &none, 0);
	put_mpa(flow, asks, "MPA ID Req Frame");
	put_mpa(flow, !asks, "MPA ID Rep Frame");
}

void trace_wire_close_locked(struct check_object *ep)
{
	struct check_flow *flow = &ep->life->ep.flow;
	const struct head none = {.len = 0};

	if (!path || !flow->is_open)
		return;
	put_packet(flow, OUTWARD, FIN | ACK, &none, 0);
	put_packet(flow, INWARD, FIN | ACK, &none, 0);
	put_packet(flow, OUTWARD, ACK, &none, 0);
	flow->is_open = false;
}

/* ---- messages ---- */

/* Where the next bytes are, in a list of segments. */
struct cursor {
	const DAT_LMR_TRIPLET *segments;
	unsigned count;
	uint64_t offset; /* in the first one */
};

/* Copies bytes of the program to `data`; those that cannot be read are zero. */
static void take_bytes(struct cursor *cursor, size_t size)
{
	unsigned char *at = data;

	memset(data, 0, sizeof(data));
	while (size && cursor->count) {
		uint64_t left = cursor->segments->segment_length - cursor->offset;
		size_t piece = left < size ? (size_t)left : size;

		(void)check_read(
			at, (void *)(uintptr_t)(cursor->segments->virtual_address + cursor->offset),
			piece);
		at += piece;
		size -= piece;
		cursor->offset += piece;
		if (cursor->offset == cursor->segments->segment_length) {
			cursor->segments++;
			cursor->count--;
			cursor->offset = 0;
		}
	}
}

struct message {
	int direction;
	unsigned opcode;
	bool is_tagged;
	uint32_t key;	  /* tagged */
	uint64_t address; /* tagged */
	uint32_t queue;	  /* untagged */
	struct cursor cursor;
	uint64_t length;
};

/* One FPDU with the next bytes of the message. */
static void put_fpdu(struct check_flow *flow, const struct message *message, uint64_t offset,
		     size_t size)
{
	size_t header = message->is_tagged ? 14 : 18, padding = (4 - (2 + header + size) % 4) % 4;
	bool is_last = offset + size == message->length;
	struct head head = {.len = 0};

	put(&head, header + size, 2);
	put(&head, (message->is_tagged ? 0x80u : 0) | (is_last ? 0x40u : 0) | 1, 1);
	put(&head, 0x40 | message->opcode, 1);
	put(&head, message->is_tagged ? message->key : 0, 4);
	if (message->is_tagged)
		put(&head, message->address + offset, 8);
	else {
		put(&head, message->queue, 4);
		put(&head, flow->messages[message->direction][message->queue], 4);
		put(&head, offset, 4);
	}
	put_packet(flow, message->direction, PUSH | ACK, &head, size + padding + 4);
}

static void put_message(struct check_object *ep, struct message *message)
{
	struct check_flow *flow = &ep->life->ep.flow;
	uint64_t offset = 0;

	trace_wire_open_locked(ep);
	if (!message->is_tagged)
		flow->messages[message->direction][message->queue]++;
	do {
		uint64_t left = message->length - offset;
		size_t size = left < PIECE ? (size_t)left : PIECE;

		take_bytes(&message->cursor, size);
		put_fpdu(flow, message, offset, size);
		offset += size;
	} while (offset < message->length);
}

/* The sink of a Read is the buffer itself: a program's key for it is its address here. */
static void put_read_request(struct check_object *ep, const struct check_post *post,
			     uint64_t length)
{
	struct check_flow *flow = &ep->life->ep.flow;
	struct head head = {.len = 0};

	trace_wire_open_locked(ep);
	put(&head, 18 + 28, 2);
	put(&head, 0x41, 1);
	put(&head, 0x40 | READ_REQUEST, 1);
	put(&head, 0, 4);
	put(&head, QUEUE_READ, 4);
	put(&head, ++flow->messages[OUTWARD][QUEUE_READ], 4);
	put(&head, 0, 4);
	put(&head, post->segment_count ? post->segments[0].lmr_context : 0, 4);
	put(&head, post->segment_count ? post->segments[0].virtual_address : 0, 8);
	put(&head, length, 4);
	put(&head, post->remote->rmr_context, 4);
	put(&head, post->remote->target_address, 8);
	put(&head, 0, 4); /* no CRC; 48 bytes need no padding */
	memset(data, 0, sizeof(data));
	put_packet(flow, OUTWARD, PUSH | ACK, &head, 0);
}

void trace_wire_posted_locked(struct check_object *ep, const struct check_post *post)
{
	struct message message = {
		.direction = OUTWARD,
		.opcode = post->kind == CHECK_WRITE ? RDMA_WRITE : SEND,
		.is_tagged = post->kind == CHECK_WRITE,
		.cursor = {post->segments, (unsigned)post->segment_count, 0},
		.length = check_length(post->segments, (unsigned)post->segment_count),
	};

	if (post->kind == CHECK_SEND && post->flags & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		message.opcode = SOLICITED;
	if (post->kind == CHECK_READ && post->remote) {
		put_read_request(ep, post, message.length);
		return;
	}
	if (post->kind == CHECK_WRITE && post->remote) {
		message.key = post->remote->rmr_context;
		message.address = post->remote->target_address;
	}
	if (post->kind == CHECK_SEND || post->kind == CHECK_WRITE)
		put_message(ep, &message);
}

void trace_wire_completed_locked(struct check_object *ep, const struct check_request *request,
				 uint64_t length)
{
	bool is_read = request->kind == CHECK_READ;
	struct message message = {
		.direction = INWARD,
		.opcode = is_read ? READ_RESPONSE : SEND,
		.is_tagged = is_read,
		.key = is_read && request->segment_count ? request->segments[0].lmr_context : 0,
		.address = is_read && request->segment_count ? request->segments[0].virtual_address
							     : 0,
		.cursor = {request->segments, request->segment_count, 0},
		.length = length,
	};

	if (is_read || request->kind == CHECK_RECV)
		put_message(ep, &message);
}
