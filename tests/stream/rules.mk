# One answer whatever the budget; see check_stream.c.
$(B)/tests/check_stream: $(call obj,$(wildcard tests/stream/*.c) $(lib_src)) $(B)/libsupport.a
	$(call link,$^)

.PHONY: check-stream
check-stream: $(B)/tests/check_stream ## one digest of logits at every budget [MODEL=FILE ARGS="--only qwen3moe"]
	$(RUN) $(B)/tests/check_stream $(ARGS) $(MODEL)

# The families whose floors are furthest from their files: recurrent layers with experts, sinks and windows with experts.
floor_models := qwen35moe-35b-a3b+Q4_K_M+layers-4+experts-32+vocab-1024 gpt-oss-20b+MXFP4+layers-2+experts-12+vocab-1024

.PHONY: check-floor
check-floor: $(B)/tests/check_stream $(if $(MODELS),,$(floor_models:%=$(B)/models/%.gguf)) ## one digest at 1.2 x floor and unlimited [MODELS="FILE..."]
	$(RUN) $(B)/tests/check_stream --floor 1.2 $(ARGS) $(or $(MODELS),$(floor_models:%=$(B)/models/%.gguf))
