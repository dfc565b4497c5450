// SPDX-License-Identifier: BSD-2-Clause
/*
 * A set-up between two sockets, and the packets after it: the input plays the callers of a service
 * point of ours, or the service point that we call, and our consumer. A packet is built as an
 * honest peer would, then the input changes some of its bytes and chooses its descriptors; or it is
 * any bytes. Every packet that we send must be valid, only memory files that a key grants leave
 * this process, and at the end all references and descriptors have been returned.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lab.h"
#include "peer_change.h"
#include "peer_input.h"
#include "soft/fds.h"
#include "soft/key.h"
#include "soft/shm/state.h"
#include "soft/shm/connect/dir.h"
#include "soft/shm/connect/listen.h"
#include "soft/shm/connect/setup.h"
#include "soft/shm/engine/drive.h"
#include "soft/shm/engine/engine.h"

#define PEERS 4u
#define FILE_SIZE 8192u
#define FILE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define TURNS 64u

enum key {
	KEY_SHARED,	      /* of memory that a peer may map */
	KEY_SHARED_READ_ONLY, /* likewise, but for RDMA Reads only */
	KEY_OTHER_ZONE,	      /* likewise, in another protection zone */
	KEY_PRIVATE,	      /* of memory that no peer can map */
	KEYS,
};

static struct play {
	struct lab *lab;
	struct peer_input in;
	DAT_CONN_QUAL qual;
	struct shm_dir dir; /* opened once */
	char name[SHM_DIR_NAME_MAX];
	struct shm_listener *listener; /* ours; NULL: we call */
	struct shm_dir_file file;
	int service_fd;	      /* the peer's; -1: it calls */
	int peers[PEERS];     /* the peers' ends of the sockets; -1: none */
	void *offered[PEERS]; /* requests that our consumer has */
	unsigned offered_count;
	uint8_t *memory;     /* FILE_SIZE bytes of a memory file */
	uint32_t keys[KEYS]; /* of ours; the first three are of `memory` */
	uint32_t asked;	     /* the key of the peer whose memory we have asked for last */
} play;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Sockets and files of memory; the fuzzer itself opens pipes to its helpers. */
static unsigned count_open(void)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned count = 0;

	LAB_MUST(dir);
	while ((entry = readdir(dir))) {
		char target[16] = "";

		(void)!readlinkat(dirfd(dir), entry->d_name, target, sizeof(target) - 1);
		count += !strncmp(target, "socket:", 7) || !strncmp(target, "/memfd:", 7);
	}
	closedir(dir);
	return count;
}

/* --- what the peer sends --- */

static uint32_t choose_key(uint8_t choice)
{
	if (choice < 64)
		return play.keys[choice % KEYS];
	return choice < 128 ? play.asked : choice < 192 ? play.lab->peer_rkey : choice;
}

/* The packet of an honest peer; `choice` is its only word, or the length of its private data. */
static void fill_packet(union shm_wire *wire, enum shm_wire_type type, uint8_t choice)
{
	const struct lab_form form = {.has_cma = true};

	shm_wire_prepare(wire, type);
	switch (type) {
	case SHM_WIRE_REQUEST:
		wire->request.qual = play.qual;
		wire->request.family = play.lab->ia.address.sa.sa_family;
		lab_fill_side(&form, &wire->request.side);
		wire->request.private_size = choice;
		break;
	case SHM_WIRE_ACCEPT:
		lab_fill_side(&form, &wire->accept.side);
		wire->accept.private_size = choice;
		break;
	case SHM_WIRE_REJECT:
		wire->word.word = 1 + choice % 2;
		break;
	case SHM_WIRE_CLOSE:
		wire->word.word = 3 + choice % 2;
		break;
	case SHM_WIRE_READY:
		wire->word.word = UINT32_MAX;
		break;
	case SHM_WIRE_MAP_GIVE:
		wire->give.key = choose_key(choice);
		wire->give.address = (uintptr_t)play.lab->peer_memory;
		wire->give.length = FILE_SIZE;
		break;
	default:
		wire->word.word = choose_key(choice);
	}
}

/* A descriptor for the packet: a segment, a key table, a memory file, or a pipe. */
static int open_file(unsigned kind)
{
	int ends[2];

	switch (kind & 3) {
	case 0:
		return peer_file(sizeof(struct shm_segment), FILE_SEALS);
	case 1:
		return dup(soft_keys_fd(play.lab->peer_keys));
	case 2:
		return peer_file(FILE_SIZE, FILE_SEALS);
	default:
		LAB_MUST(pipe(ends) == 0);
		close(ends[1]);
		return ends[0];
	}
}

/* Sends it with up to three descriptors. The kernel may refuse it. */
static void send_packet(int fd, const void *bytes, size_t size, uint8_t choice)
{
	struct iovec iov = {(void *)(uintptr_t)bytes, size};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(3 * sizeof(int))];
	} control = {.bytes = {0}};
	struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
	unsigned count = choice & 3;
	int fds[3];

	for (unsigned i = 0; i < count; i++)
		fds[i] = open_file(choice >> (2 + 2 * i));
	if (count) {
		message.msg_control = &control;
		message.msg_controllen = CMSG_SPACE(count * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(count * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, count * sizeof(int));
	}
	(void)!sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
	while (count)
		close(fds[--count]);
}

static void send_valid(int fd)
{
	struct peer_input *in = &play.in;
	enum shm_wire_type type = 1 + peer_byte(in) % (SHM_WIRE_TYPE_END - 1);
	uint8_t descriptors = peer_byte(in), changes;
	union shm_wire wire;
	size_t size;

	fill_packet(&wire, type, peer_byte(in));
	size = shm_wire_size(&wire);
	for (changes = peer_byte(in); changes & 3; changes--) {
		uint32_t offset = peer_byte(in);

		((uint8_t *)&wire)[offset % size] = peer_byte(in);
	}
	size -= changes >> 6 == 1; /* one byte less, or one more */
	size += changes >> 6 == 2;
	send_packet(fd, &wire, size < sizeof(wire) ? size : sizeof(wire), descriptors);
}

static void send_any(int fd)
{
	uint8_t bytes[sizeof(union shm_wire) + 2] = {0};
	uint8_t descriptors = peer_byte(&play.in), size = peer_byte(&play.in);

	for (unsigned i = 0; i < size; i++)
		bytes[i] = peer_byte(&play.in);
	send_packet(fd, bytes, size == 255 ? sizeof(bytes) : size, descriptors);
}

/* --- what we send --- */

static void check_given(const struct shm_wire_give *give, int fd)
{
	int access = fcntl(fd, F_GETFL) & O_ACCMODE;

	LAB_MUST(give->key == play.keys[KEY_SHARED] ||
		 give->key == play.keys[KEY_SHARED_READ_ONLY]);
	LAB_MUST(access == (give->key == play.keys[KEY_SHARED] ? O_RDWR : O_RDONLY));
	LAB_MUST(give->address == (uintptr_t)play.memory && give->length == FILE_SIZE);
	LAB_MUST(give->offset == 0);
}

static void check_packet(const union shm_wire *wire, const int *fds)
{
	switch (wire->head.type) {
	case SHM_WIRE_MAP_ASK:
		play.asked = wire->word.word;
		break;
	case SHM_WIRE_MAP_GIVE:
		check_given(&wire->give, fds[0]);
		break;
	case SHM_WIRE_REQUEST:
		LAB_MUST(wire->request.qual == play.qual);
		break;
	default:
		break;
	}
}

static void receive_all(int fd)
{
	uint8_t bytes[sizeof(union shm_wire) + 1];
	struct iovec iov = {bytes, sizeof(bytes)};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(8 * sizeof(int))];
	} control;
	ssize_t size;

	do {
		struct msghdr message = {.msg_iov = &iov,
					 .msg_iovlen = 1,
					 .msg_control = &control,
					 .msg_controllen = sizeof(control)};
		const struct cmsghdr *header;
		unsigned count = 0;
		union shm_wire wire;
		int fds[8];

		size = recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		header = size > 0 ? CMSG_FIRSTHDR(&message) : NULL;
		if (header)
			count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
		if (count)
			memcpy(fds, CMSG_DATA(header), count * sizeof(int));
		if (size > 0) {
			LAB_MUST(shm_wire_decode(bytes, (size_t)size, count, &wire) == 0);
			check_packet(&wire, fds);
		}
		while (count)
			close(fds[--count]);
	} while (size > 0);
}

/* --- our side --- */

/* False: nothing has happened. */
static bool turn(void)
{
	struct shm_engine *engine = play.lab->engine;
	struct epoll_event events[16];
	int count = epoll_wait(engine->service.epoll_fd, events, 16, 0);

	soft_is_library_thread = true;
	for (int i = 0; i < count; i++)
		shm_service_event(engine, events[i].data.ptr);
	shm_service_pending(engine);
	shm_service_deadlines(engine);
	soft_is_library_thread = false;
	lab_take_events(play.lab);
	return count > 0;
}

static void turn_all(void)
{
	for (unsigned i = 0; i < TURNS && turn(); i++)
		for (unsigned k = 0; k < PEERS; k++)
			if (play.peers[k] >= 0)
				receive_all(play.peers[k]);
}

static int take_request(struct lab *lab, const struct transport_request *request)
{
	(void)lab;
	LAB_MUST(request->conn_qual == play.qual);
	LAB_MUST(request->param.private_data_size <= SHM_PRIVATE_MAX);
	if (play.offered_count == PEERS)
		return -1;
	play.offered[play.offered_count++] = request->transport;
	return 0;
}

static void fill_param(struct transport_conn_param *param)
{
	static const uint8_t data[LAB_PRIVATE_MAX];

	*param = (struct transport_conn_param){.read_in = 1, .read_out = 3};
	param->private_data = data;
	param->private_data_size = peer_byte(&play.in) % (LAB_PRIVATE_MAX + 1);
}

/* Accepts the request that came last, if our endpoint is free; or rejects it. */
static void answer_request(bool is_accepted)
{
	struct transport_conn_param param;
	struct lab *lab = play.lab;
	void *request;

	if (!play.offered_count)
		return;
	request = play.offered[play.offered_count - 1];
	fill_param(&param);
	if (is_accepted && !lab->conn && !lab->end) {
		shm_conn_get(request);
		if (shm_accept(request, &lab->ep, &param) < 0) {
			shm_conn_put(request);
			return; /* it may be repeated */
		}
		lab->conn = request;
	} else {
		shm_reject(request,
			   peer_byte(&play.in) & 1 ? TRANSPORT_REJECT_CONSUMER
						   : TRANSPORT_REJECT_PROVIDER,
			   NULL, 0);
	}
	play.offered_count--;
}

static void free_key(enum key which)
{
	struct lab *lab = play.lab;

	if (!play.keys[which])
		return;
	soft_keys_invalidate(lab->adapter.keys, play.keys[which]);
	shm_map_key_dead(lab->engine, play.keys[which]);
	turn_all(); /* what was sent before is checked before the key is forgotten */
	soft_keys_release(lab->adapter.keys, play.keys[which]);
	play.keys[which] = 0;
}

static void use_connection(uint8_t what)
{
	struct lab *lab = play.lab;

	if (!lab->conn || !lab_is_open(lab))
		return;
	switch (what & 7) {
	case 0:
	case 1:
		lab_post(lab, what & 1 ? CORE_OP_RDMA_READ : CORE_OP_RDMA_WRITE, 0, 100,
			 lab->peer_rkey, (uintptr_t)lab->peer_memory + what);
		break;
	case 2:
		lab_post(lab, CORE_OP_SEND, 0, what * 1000u, 0, 0);
		break;
	case 3:
		lab_post_receive(lab, 0, 100);
		break;
	case 4:
		shm_ep_disconnect(&lab->ep, what & 8);
		break;
	default:
		lab_pass(lab);
	}
}

static void stop_listening(void)
{
	if (play.listener)
		shm_unlisten(play.lab->engine, play.listener);
	play.listener = NULL;
}

static void consumer_acts(void)
{
	uint8_t what = peer_byte(&play.in);

	if (what < 8)
		free_key((enum key)(what % KEYS));
	else if (what == 8)
		stop_listening();
	else
		use_connection(what >> 3);
}

/* --- the two roles --- */

static void call_service_point(unsigned index)
{
	int *peer = &play.peers[index];

	if (*peer >= 0 || play.service_fd >= 0)
		return;
	*peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	LAB_MUST(*peer >= 0);
	if (shm_dir_connect(&play.dir, *peer, play.name) < 0) {
		close(*peer);
		*peer = -1;
	}
}

/* There is no other way. */
static int refuse_elsewhere(struct core_ep *ep, const union core_sockaddr *address,
			    DAT_CONN_QUAL qual, DAT_TIMEOUT timeout_us,
			    const struct transport_conn_param *param)
{
	LAB_MUST(ep == &play.lab->ep && !shm_ep_conn(ep));
	LAB_MUST(address->sa.sa_family == AF_INET && qual == play.qual && timeout_us);
	LAB_MUST(param->private_data_size <= LAB_PRIVATE_MAX);
	return -EHOSTUNREACH;
}

/* The engine calls a service point of the peer, which may not listen, or have no room. */
static void be_called(uint8_t choice)
{
	struct transport_conn_param param;
	struct lab *lab = play.lab;
	const struct shm_dir *dir = &play.dir;
	int rc, other = -1;

	play.service_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	LAB_MUST(play.service_fd >= 0);
	if ((choice & 3) != 1) {
		LAB_MUST(shm_dir_listen(dir, play.service_fd, play.name, &play.file) == 0);
		LAB_MUST(listen(play.service_fd, 0) == 0);
	}
	if ((choice & 3) == 2) {
		other = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		(void)!shm_dir_connect(dir, other, play.name);
	}
	fill_param(&param);
	rc = shm_connect(lab->engine, &lab->ep, &lab->ia.address, play.qual,
			 choice & 4 ? DAT_TIMEOUT_INFINITE : 1000000000, &param,
			 choice & 8 ? refuse_elsewhere : NULL);
	if (rc < 0) {
		LAB_MUST(rc == -EHOSTUNREACH && (choice & 11) == 9);
		lab->end = DAT_CONNECTION_EVENT_NON_PEER_REJECTED;
		return;
	}
	lab->conn = shm_ep_conn(&lab->ep);
	shm_conn_get(lab->conn);
	turn_all();
	if (other >= 0) {
		close(accept(play.service_fd, NULL, NULL));
		close(other);
		if (shm_conn_state(lab->conn) == SHM_CALLING)
			shm_setup_retry(lab->conn, &lab->ep, UINT64_MAX);
		turn_all();
	}
	play.peers[0] = accept4(play.service_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static void one_action(void)
{
	uint8_t action = peer_byte(&play.in);
	unsigned index = (action >> 3) % PEERS;
	int *peer = &play.peers[index];

	switch (action & 7) {
	case 0:
		call_service_point(index);
		break;
	case 1:
		if (*peer >= 0)
			send_any(*peer);
		break;
	case 2:
		if (*peer >= 0)
			close(*peer);
		*peer = -1;
		break;
	case 3:
	case 4:
		answer_request((action & 7) == 3);
		break;
	case 5:
		consumer_acts();
		break;
	default:
		if (*peer >= 0)
			send_valid(*peer);
	}
	if (action < 128) /* else together with what follows */
		turn_all();
}

static void make_keys(void)
{
	const uint32_t all = SOFT_RIGHT_REMOTE_READ | SOFT_RIGHT_REMOTE_WRITE;
	struct soft_keys *keys = play.lab->adapter.keys;
	uint32_t zone = play.lab->pz.id;

	if (!play.memory) {
		int fd = peer_file(FILE_SIZE, FILE_SEALS);

		play.memory = mmap(NULL, FILE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		LAB_MUST(play.memory != MAP_FAILED);
		close(fd);
	}
	for (unsigned i = 0; i < KEYS; i++) {
		uint8_t *memory = i == KEY_PRIVATE ? play.lab->memory : play.memory;
		uint32_t rights = i == KEY_SHARED_READ_ONLY ? SOFT_RIGHT_REMOTE_READ : all;

		LAB_MUST(!soft_keys_add(keys, (uintptr_t)memory, FILE_SIZE, rights,
					i == KEY_OTHER_ZONE ? zone + 1 : zone, &play.keys[i]));
	}
}

static void open_play(uint8_t choice)
{
	static uint32_t count;
	const struct lab_form form = {.copy = choice & 2 ? CORE_COPY_RING : CORE_COPY_AUTO,
				      .setup_timeout_ms = choice & 8 ? 0 : 1000000};
	struct lab *lab = lab_open_alone(&form);

	play.lab = lab;
	lab->requested = take_request;
	play.qual = (uint64_t)getpid() << 32 | ++count; /* no name is used twice */
	if (count == 1)
		LAB_MUST(shm_dir_open("", &lab->ia.address, &play.dir) == 0);
	shm_dir_name(&play.dir, &lab->ia.address, play.qual, play.name);
	play.file.name[0] = '\0';
	play.service_fd = -1;
	play.offered_count = 0;
	play.asked = 0;
	memset(play.peers, 0xff, sizeof(play.peers));
	make_keys();
	if (choice & 1)
		be_called(choice >> 4);
	else
		LAB_MUST(shm_listen(lab->engine, (struct core_ref){NULL, 0}, &play.qual,
				    &play.listener) == 0);
}

static void close_play(void)
{
	struct lab *lab = play.lab;

	turn_all();
	while (play.offered_count)
		answer_request(false);
	for (unsigned i = 0; i < PEERS; i++)
		if (play.peers[i] >= 0)
			close(play.peers[i]);
	if (play.service_fd >= 0)
		close(play.service_fd);
	memset(play.peers, 0xff, sizeof(play.peers));
	turn_all();
	stop_listening();
	if (play.file.name[0])
		shm_dir_remove(&play.dir, &play.file);
	for (unsigned i = 0; i < KEYS; i++)
		free_key((enum key)i);
	lab_close(lab);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned open_before;
	unsigned open;
	uint8_t choice;

	play.in = (struct peer_input){data, size};
	choice = peer_byte(&play.in);
	open_play(choice);
	while (play.in.left)
		one_action();
	close_play();
	/* the first run opens the tables */
	open = count_open();
	LAB_MUST(!open_before || open == open_before);
	open_before = open;
	return 0;
}
