// Every text of the page, in English and Chinese.

export type Language = "en" | "zh";

const WORDS: Record<string, [en: string, zh: string]> = {
  title: ["Play with trained agents", "与训练好的智能体一起玩"],
  language: ["中文", "English"],
  language_label: ["切换到中文", "Switch to English"],
  board: ["Board", "棋盘"],
  players: ["Players", "玩家"],
  player: ["player {0}", "玩家 {0}"],
  you: ["you", "你"],
  seat_label: ["Who plays seat {0}", "座位 {0} 由谁来玩"],
  person: ["a person", "真人"],
  new_episode: ["New episode", "新的一局"],
  remember: ["agents remember the last episode", "智能体记住上一局"],
  greedy: ["agents take their likeliest action", "智能体总取最可能的动作"],
  step: ["Step", "走一步"],
  run: ["Run", "自动播放"],
  pause: ["Pause", "暂停"],
  back: ["Take back", "退回一步"],
  shown: ["Step shown", "显示的步"],
  your_move: ["Player {0}: your move", "玩家 {0}：请选择动作"],
  watching: ["Nobody waits for you: press Step or Run", "没有真人玩家：按“走一步”或“自动播放”"],
  replaying: ["You look at step {0} of {1}. Move the slider to the end to play on", "正在看第 {0} 步（共 {1} 步）。把滑块移到末尾可继续"],
  over: ["The episode is over after {0} steps", "本局在第 {0} 步结束"],
  got: ["player {0} got {1}", "玩家 {0} 得到 {1}"],
  did: ["{0}: {1}", "{0}：{1}"],
  stop: [". ", "。"],
  time: ["Step {0} of at most {1}", "第 {0} 步（最多 {1} 步）"],
  return: ["return {0}", "累计 {0}"],
  left: ["has left", "已离开"],
  show: ["Show", "显示"],
  beliefs: ["beliefs", "信念"],
  predicted: ["predicted actions", "预测的动作"],
  policy: ["policy", "策略"],
  value: ["expects {0} more", "预计还能得到 {0}"],
  believes: ["believes about {0}", "对玩家 {0} 的信念"],
  predicts: ["predicts of {0}", "预测玩家 {0}"],
  plays: ["plays next", "下一步"],
  nothing: ["no beliefs, no predictions", "没有信念和预测"],
  episodes: ["Episodes", "对局"],
  no_episodes: ["No episode is complete yet.", "还没有完成的对局。"],
  episode: ["Episode {0}: returns {1}", "第 {0} 局：累计回报 {1}"],
  replay: ["Replay", "回放"],
  replay_label: ["Replay episode {0}", "回放第 {0} 局"],
  current: ["Back to the current episode", "回到当前对局"],
  save: ["Save {0} episodes as a file", "把 {0} 局存成文件"],
  forget: ["Forget all episodes", "清除所有对局"],
  private: [
    "Nothing leaves this page: it cannot use the network. The file is written to your own device, and holds line-ups, states, actions and rewards, no names and no times.",
    "任何数据都不会离开本页：页面无法使用网络。文件只存到你自己的设备，内容是座位安排、状态、动作和奖励，没有姓名和时间。",
  ],
  rules: ["Rules and keys", "规则与按键"],
  rules_stag_hunt: [
    "All players act at once. One player can catch a hare (worth {2}). A stag (worth {1}) needs two hunters on its cell in the same step. Hunters share what they catch and leave with it. The episode ends after {0} steps.",
    "所有玩家同时行动。一个玩家就能抓到野兔（价值 {2}）。雄鹿（价值 {1}）要求同一步内至少两名猎人在它的格子上狩猎。猎人平分猎物并随之离场。一局最多 {0} 步。",
  ],
  rules_matrix: [
    "All players choose at once, {0} times. The table shows what the row player gets.",
    "所有玩家同时选择，共 {0} 轮。表中是行玩家的收益。",
  ],
  rules_foraging: [
    "All players act at once. Players load food from a cell beside it. The dots of a player and the apples of a food show levels. A food is taken if the levels of the players that load it in the same step add up to its own or more; its level is split among them in proportion to theirs. Nobody walks onto a cell with food or another player. The episode ends when no food is left, or after {0} steps.",
    "所有玩家同时行动。玩家站在食物旁边的格子上装取食物。玩家身上的圆点和食物的苹果数表示等级。同一步内装取同一食物的玩家等级之和不低于食物等级，就能取走；其价值按玩家等级比例分配。不能走进有食物或其他玩家的格子。食物取完或满 {0} 步时本局结束。",
  ],
  rules_coins: [
    "All players move at once. Whoever walks onto a coin takes it and gets {1}; players that arrive together share it. If others take your coin, which has your colour, you pay {2}, or their share of it. A taken coin comes back on a random free cell. The episode ends after {0} steps.",
    "所有玩家同时移动。走到硬币上的玩家取走硬币并得到 {1}，同时到达者平分。与你颜色相同的硬币是你的；若被他人取走，你要付出 {2}（或他人所占的份额）。取走的硬币会出现在随机的空格上。一局共 {0} 步。",
  ],
  keys: [
    "Arrows or W A S D move, space stays, E hunts or loads, digits choose an action by its number, Z takes back, N starts a new episode, P runs and pauses, Enter makes a step if no person plays.",
    "方向键或 W A S D 移动，空格停留，E 狩猎或装取，数字键按编号选择动作，Z 退回，N 新的一局，P 播放或暂停，没有真人时回车走一步。",
  ],
  cell: ["row {0}, column {1}", "第 {0} 行第 {1} 列"],
  stags: ["stag", "雄鹿"],
  hares: ["hare", "野兔"],
  obstacles: ["wall", "墙"],
  empty: ["empty board", "空棋盘"],
  up: ["up", "上"],
  down: ["down", "下"],
  left_move: ["left", "左"],
  right: ["right", "右"],
  stay: ["stay", "停留"],
  load: ["load", "装取"],
  level: ["level {0}", "等级 {0}"],
  food: ["food of level {0}", "{0} 级食物"],
  coin: ["coin of player {0}", "玩家 {0} 的硬币"],
  "hunt stag": ["hunt stag", "猎鹿"],
  "hunt hare": ["hunt hare", "猎兔"],
  cooperate: ["cooperate", "合作"],
  defect: ["defect", "背叛"],
  none: ["nothing", "无"],
  stag: ["stag", "雄鹿"],
  hare: ["hare", "野兔"],
  other: ["other", "其他"],
  paid: ["paid", "得分"],
  nearest_stag: ["hunts stags", "猎鹿者"],
  nearest_hare: ["hunts hares", "猎兔者"],
  "patient_stag(3)": ["hunts stags, gives up after 3 steps", "猎鹿者，等 3 步后放弃"],
  random: ["plays at random", "随机行动"],
  nearest_food: ["loads the nearest food", "取最近的食物"],
  strongest_food: ["loads the largest food", "取等级最高的食物"],
  easy_food: ["loads food it can take alone", "取能独自拿走的食物"],
  own_coins: ["takes its own coins", "只取自己的硬币"],
  others_coins: ["takes coins of others", "取他人的硬币"],
  any_coins: ["takes any coin", "取任何硬币"],
  scripts: ["Scripts", "脚本"],
  agents: ["Trained agents", "训练好的智能体"],
  seat_of: ["{0}, trained in seat {1}", "{0}（座位 {1} 训练）"],
  payoff: ["Payoff of the row player", "行玩家的收益"],
  last: ["last round", "上一轮"],
};

export function say(language: Language, name: string, ...values: (string | number)[]): string {
  const pair = WORDS[name];
  const text = pair ? pair[language === "en" ? 0 : 1] : name;
  return text.replace(/\{(\d)\}/g, (_, index) => String(values[Number(index)]));
}

/** The name of a thing on the board, or of a goal, as in food_2 and coins_0. */
export function sayThing(language: Language, name: string): string {
  const [, kind, number] = /^(foods?|coins)_(\d)$/.exec(name) ?? [];
  if (!kind) return say(language, name);
  return kind === "coins" ? say(language, "coin", Number(number) + 1) : say(language, "food", number);
}

/** The name of an action; "left" is also a word for a player that is gone. */
export const sayAction = (language: Language, name: string): string => say(language, name === "left" ? "left_move" : name);
