# The whole daemon for aarch64: built against Debian's arm64 packages, run by qemu.

cross_root := $(B)-aarch64/sysroot
cross_pc   := PKG_CONFIG_LIBDIR=$(abspath $(cross_root))/root/usr/lib/aarch64-linux-gnu/pkgconfig \
              PKG_CONFIG_SYSROOT_DIR=$(abspath $(cross_root))/root

.PHONY: cross-daemon
cross-daemon: $(B)/tests/tiny.gguf ## rnbd and rnbctl for aarch64, built and answering under qemu
	@tests/cross/sysroot.sh $(cross_root); case $$? in 0) ;; 77) exit 0 ;; *) exit 1 ;; esac; \
	$(cross_pc) $(MAKE) --no-print-directory B=$(B)-aarch64 CC='$(CROSS_CC) --sysroot=$(abspath $(cross_root))/root' all && \
	tests/cross/daemon.sh $(B)-aarch64 $(cross_root)/root $(B)/tests/tiny.gguf
